//! Links of rendered pages. Those to other places in the net are not followed.

use anyhow::{Context, Result};
use scraper::{Html, Selector};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What a page has.
struct Page {
    /// The places in it that have a name.
    names: BTreeSet<String>,
    /// Where it leads, and the pictures that it shows.
    links: Vec<String>,
}

/// How many links there are in a folder of pages, and what is wrong with each that leads nowhere.
///
/// # Errors
///
/// A page that cannot be read.
pub fn check(folder: &Path) -> Result<(usize, Vec<String>)> {
    let mut pages = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(PathBuf::from).unwrap_or_default();
        // All pages in one, with other names, for printers; and a page for links that are wrong.
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
        Some(_) => Some("the page has no such place"),
        None if folder.join(target).is_file() => None,
        None => Some("there is no such file"),
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
