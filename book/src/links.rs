//! Checks the links of rendered pages. External links are not followed.

use anyhow::{Context, Result};
use scraper::{Html, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The anchors and links of a page.
struct Page {
    /// The names of its anchors.
    names: BTreeSet<String>,
    /// The targets of its links and pictures.
    links: Vec<String>,
}

/// Checks the links in a folder of pages. Returns their number, and a message for each broken link.
///
/// # Errors
///
/// A page that cannot be read.
pub fn check(folder: &Path) -> Result<(usize, Vec<String>)> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        // `print.html` contains all pages with other names, and `404.html` is for broken links.
        let is_copy = name == Path::new("print.html") || name == Path::new("404.html");
        if path.extension().is_some_and(|extension| extension == "html") && !is_copy {
            pages.insert(name, read(&path)?);
        }
    }
    let mut count = 0;
    let mut broken = Vec::new();
    for (name, page) in &pages {
        for link in &page.links {
            if link.contains("://") || link.starts_with("mailto:") || link.starts_with("data:") {
                continue;
            }
            count += 1;
            if let Some(fault) = fault(folder, &pages, name, link) {
                broken.push(format!("{}: `{link}`: {fault}", name.display()));
            }
        }
    }
    Ok((count, broken))
}

fn fault(folder: &Path, pages: &BTreeMap<PathBuf, Page>, from: &Path, link: &str) -> Option<&'static str> {
    let (path, place) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { from } else { Path::new(path) };
    match pages.get(target) {
        Some(page) if place.is_empty() || page.names.contains(place) => None,
        Some(_) => Some("the page has no such anchor"),
        None if folder.join(target).is_file() => None,
        None => Some("the file does not exist"),
    }
}

fn read(path: &Path) -> Result<Page> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let html = Html::parse_document(&text);
    let all = |selector: &str, attribute: &str| -> Result<Vec<String>> {
        let selector = Selector::parse(selector).map_err(|error| anyhow::anyhow!("{selector}: {error}"))?;
        let found = html.select(&selector).filter_map(|element| element.attr(attribute));
        Ok(found.map(str::to_owned).collect())
    };
    let mut links = all("main a[href]", "href")?;
    links.extend(all("main img[src]", "src")?);
    Ok(Page {
        names: all("[id]", "id")?.into_iter().collect(),
        links,
    })
}
