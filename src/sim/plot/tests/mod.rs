#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::cast_precision_loss, reason = "tests")]

mod axes;
mod charts;
mod laws;
mod layout;

use super::*;

/// A chart of these series over hours.
fn chart(kind: Kind, series: Vec<Series>) -> Chart {
    Chart {
        title: "What is seen".to_owned(),
        subtitle: "Of what it is".to_owned(),
        x: Axis::new("since the start", Unit::Span),
        y: Axis::new("cores", Unit::Number),
        kind,
        series,
    }
}

/// One value for every hour.
fn hourly(values: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    values.into_iter().enumerate().map(|(hour, value)| (hour as f64 * 3600.0, value)).collect()
}

/// All texts of a document. Fails if the document is not well-formed.
fn texts(svg: &str) -> Vec<String> {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    let texts = document.descendants().filter(|node| node.has_tag_name("text") || node.has_tag_name("title"));
    texts.filter_map(|node| node.text()).map(|text| text.trim().to_owned()).collect()
}
