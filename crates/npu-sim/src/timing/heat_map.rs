//! A picture of the mesh: the requests that each tile serves, the misses of its core, and the
//! flits on the links.

use super::mesh::LinkUse;
use super::misses::{MissCounters, MissesReport};
use crate::topology::Topology;
use std::fmt::Write as _;

/// The side of a tile, the distance between two tiles, and the margin, in pixels.
const SIDE: u32 = 120;
const GAP: u32 = 56;
const MARGIN: u32 = 24;
/// The height of the legend in pixels.
const LEGEND: u32 = 44;
/// The distance of the two directions of a link from its middle, in pixels.
const LANE: i64 = 9;
/// The width of the link with the most flits, in pixels.
const WIDEST: f64 = 12.0;

/// Returns the color of a part of the maximum: from near white to dark red.
fn color(part: f64) -> String {
    let part = part.clamp(0.0, 1.0);
    let between = |from: f64, to: f64| (from + (to - from) * part).round();
    format!(
        "rgb({},{},{})",
        between(255.0, 176.0),
        between(248.0, 24.0),
        between(236.0, 20.0)
    )
}

/// Returns the part of a maximum.
fn part(count: u64, most: u64) -> f64 {
    count as f64 / most.max(1) as f64
}

/// Returns the upper left corner of a tile in pixels.
fn corner(mesh: &Topology, tile: u32) -> (u32, u32) {
    let (column, row) = mesh.place(tile);
    (MARGIN + column * (SIDE + GAP), MARGIN + row * (SIDE + GAP))
}

impl MissesReport {
    /// Returns a heat map of the mesh as SVG. The color of a tile shows the requests that it
    /// serves, the width of a link its flits. `links` are those of the [`Report`](super::Report).
    pub fn heat_map(&self, mesh: &Topology, links: &[LinkUse]) -> String {
        let (columns, rows) = (mesh.width(), mesh.tiles() / mesh.width());
        let width = 2 * MARGIN + columns * SIDE + (columns - 1) * GAP;
        let height = 2 * MARGIN + rows * SIDE + (rows - 1) * GAP + LEGEND;
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
             <title>Requests for cache lines in the mesh</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
        );
        let most_flits = links.iter().map(|link| link.flits).max().unwrap_or_default();
        for link in links {
            draw_link(&mut text, mesh, link, most_flits);
        }
        let most = self.homes.iter().map(MissCounters::misses).max().unwrap_or_default();
        for (tile, home) in (0..mesh.tiles()).zip(&self.homes) {
            self.draw_tile(&mut text, mesh, tile, home.misses(), most);
        }
        let y = height - MARGIN - 4;
        // Writing to a string does not fail, here and below.
        let _ = write!(
            text,
            "<text x=\"{MARGIN}\" y=\"{y}\">color: requests served, up to {most}; \
             width of a link: flits, up to {most_flits}</text>\n</svg>\n"
        );
        text
    }

    fn draw_tile(&self, text: &mut String, mesh: &Topology, tile: u32, served: u64, most: u64) {
        let (x, y) = corner(mesh, tile);
        let heat = part(served, most);
        let ink = if heat > 0.6 { "white" } else { "black" };
        let fill = color(heat);
        let _ = writeln!(
            text,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\" rx=\"6\" fill=\"{fill}\" stroke=\"#444\"/>"
        );
        let role = match tile {
            _ if tile == mesh.memory_tile() => ": memory",
            _ if tile == mesh.host_tile() => ": host",
            _ => "",
        };
        let mut rows = vec![format!("tile {tile}{role}")];
        if served != 0 {
            rows.push(format!("serves {served}"));
        }
        for core in self.cores.iter().filter(|core| core.tile == tile) {
            rows.push(format!("core {}: {} misses", core.core, core.counters.misses()));
            rows.push(format!("{:.1} cycles each", core.counters.mean_cycles()));
        }
        for (row, line) in (0..).zip(rows) {
            let (x, y) = (x + 8, y + 22 + 20 * row);
            let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\" fill=\"{ink}\">{line}</text>");
        }
    }
}

/// Draws a link between two tiles, beside the link in the other direction.
fn draw_link(text: &mut String, mesh: &Topology, link: &LinkUse, most: u64) {
    let middle = |tile: u32| {
        let (x, y) = corner(mesh, tile);
        (i64::from(x + SIDE / 2), i64::from(y + SIDE / 2))
    };
    let ((x1, y1), (x2, y2)) = (middle(link.from), middle(link.to));
    // To the right of the direction of travel.
    let aside = ((y1 - y2).signum() * LANE, (x2 - x1).signum() * LANE);
    let heat = part(link.flits, most);
    let _ = writeln!(
        text,
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{:.1}\">\
         <title>tile {} to tile {}: {} flits</title></line>",
        x1 + aside.0,
        y1 + aside.1,
        x2 + aside.0,
        y2 + aside.1,
        color(0.25 + 0.75 * heat),
        1.0 + (WIDEST - 1.0) * heat,
        link.from,
        link.to,
        link.flits
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::misses::Misses;
    use crate::timing::sink::{LineRequest, LineSource, Sink as _};

    #[test]
    fn the_hottest_tile_and_link_stand_out() {
        let mut misses = Misses::new();
        for (core, line) in [(0, 1), (3, 2), (3, 5 << 22)] {
            misses.line_requested(&LineRequest {
                core,
                tile: core as u32,
                line,
                home: line >> 22,
                source: LineSource::Memory,
                store: false,
                hops: 0,
                invalidated: 0,
                legs: &[],
            });
        }
        let links = [
            LinkUse {
                from: 0,
                to: 1,
                flits: 40,
            },
            LinkUse {
                from: 1,
                to: 0,
                flits: 4,
            },
            LinkUse {
                from: 4,
                to: 0,
                flits: 0,
            },
        ];
        let mesh = Topology::default();
        let map = misses.report().heat_map(&mesh, &links);
        let hottest = color(1.0);
        let corner = corner(&mesh, 0);
        let tile = format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{SIDE}\" height=\"{SIDE}\" rx=\"6\" fill=\"{hottest}\"",
            corner.0, corner.1
        );
        assert!(map.contains(&tile), "{map}");
        assert!(
            map.contains("stroke-width=\"12.0\"><title>tile 0 to tile 1: 40 flits"),
            "{map}"
        );
        assert!(map.contains("serves 2") && map.contains("core 3: 2 misses") && map.contains("tile 15: memory"));
        assert_eq!(map.matches("<rect").count(), 1 + mesh.tiles() as usize);
        // Without misses, all tiles have the same color.
        let empty = MissesReport::default().heat_map(&mesh, &[]);
        assert_eq!(empty.matches(&color(0.0)).count(), mesh.tiles() as usize);
    }
}
