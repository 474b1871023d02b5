//! What the pages of comparisons and of suites are made of: contents, sections, charts, tables, facts.

use crate::report::comparison::chart::{Chart, SHADE};
use crate::report::comparison::marker::COLOURS;
use crate::report::comparison::table::{Cell, Table};
use crate::report::svg::{INK, LINE, MUTED, number};
use maud::{Markup, PreEscaped, html};

/// Links to what stands below, each an address and a title, and the place of the page's tools.
pub(in crate::report) fn contents(links: impl Iterator<Item = (String, String)>) -> Markup {
    html! {
        nav.contents.controls aria-label="Sections" {
            @for (address, title) in links { a href=(address) { (title) } }
            span #tools .toolbar.tools role="group" aria-label="copy and wall" {}
        }
        "\n"
    }
}

/// A section that can be folded: its title is what is clicked.
pub(in crate::report) fn section((id, title): (&str, &str), is_open: bool, body: Markup) -> Markup {
    html! {
        details.section open[is_open] {
            summary { h2 id=(id) { (title) } }
            "\n" (body)
        }
        "\n"
    }
}

/// A chart whose colours follow the reader's theme. `prefix` begins its id.
pub(in crate::report) fn figure(chart: &Chart, prefix: &str) -> Markup {
    html! {
        figure.scroll id={ (prefix) (chart.id) } {
            (themed(&chart.svg(), &chart.title))
            @if !chart.caption.is_empty() { figcaption { (chart.caption) } }
        }
        "\n"
    }
}

/// The colours of a picture on paper become those of the page.
pub(in crate::report::comparison) fn themed(svg: &str, title: &str) -> Markup {
    let start = svg.find("viewBox").unwrap_or(0);
    let open = svg.find('>').unwrap_or(0);
    let rest = &svg[open + 1..];
    // The first rectangle is the white ground.
    let rest = rest.find("/>").map_or(rest, |end| &rest[end + 2..]);
    let attributes = &svg[start..open];
    let least = number(least_width(svg));
    let label = html! { (title) }.into_string();
    in_theme(&format!("<svg role=\"img\" aria-label=\"{label}\" style=\"min-width:{least}px\" {attributes}>{rest}"))
}

/// The width of a drawing below which its smallest text could not be read; narrower windows scroll.
fn least_width(svg: &str) -> f64 {
    /// Pixels.
    const LEAST_TEXT: f64 = 11.0;
    let numbers =
        |name: &'static str| svg.split(name).skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
    let width = numbers(" width=\"").next().unwrap_or_default();
    width * LEAST_TEXT / numbers(" font-size=\"").fold(LEAST_TEXT, f64::min)
}

/// The colours of drawings become those of the page.
pub(super) fn in_theme(drawing: &str) -> Markup {
    let mut text = drawing.to_string();
    for (from, to) in [(INK, "--ink"), (MUTED, "--muted"), (LINE, "--line"), (SHADE, "--shade")] {
        text = text.replace(&format!("\"{from}\""), &format!("\"var({to})\""));
    }
    for (i, colour) in COLOURS.iter().enumerate() {
        text = text.replace(&format!("\"{colour}\""), &format!("\"var(--s{i})\""));
    }
    PreEscaped(text)
}

/// A table under its title, which unfolds it.
pub(in crate::report) fn folded(table: &Table) -> Markup {
    html! {
        details {
            summary {
                (table.title) ": " (table.rows.len()) " rows"
                span.print-only { " in tables/" (table.id) ".csv" }
            }
            "\n" (sortable(table))
        }
        "\n"
    }
}

/// A table that is sorted by a click on the name of a column, and what its numbers mean.
pub(super) fn sortable(table: &Table) -> Markup {
    let is_number =
        |column: usize| table.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.value.is_some()));
    html! {
        p.muted { (table.about) }
        "\n"
        div.scroll {
            table.sortable id={ "table-" (table.id) } {
                thead { tr {
                    @for (i, name) in table.columns.iter().enumerate() { (column(name, is_number(i))) }
                } }
                "\n"
                tbody {
                    @for row in &table.rows {
                        "\n"
                        tr { @for cell in row { (td(cell)) } }
                    }
                }
            }
        }
        "\n"
    }
}

/// The head of a column that can be sorted.
pub(super) fn column(name: &str, is_number: bool) -> Markup {
    html! { th class=[is_number.then_some("number")] scope="col" { button type="button" { (name) } } }
}

fn td(cell: &Cell) -> Markup {
    html! { td class=[cell.value.and(Some("number"))] data-value=[cell.value] { (cell.text) } }
}

/// What is so, each with its name.
pub(in crate::report) fn facts<'a>(facts: impl Iterator<Item = (&'a str, String)>) -> Markup {
    html! {
        dl.facts {
            @for (what, value) in facts { "\n" dt { (what) } dd { (value) } }
        }
        "\n"
    }
}
