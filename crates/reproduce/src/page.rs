//! `--report`: every table and figure on one HTML page, published and ours in each cell. The laboratory's page shows its
//! sections.
//!
//! The same words and numbers as [`super::side_by_side`]; nothing is computed here.

use render::report::html::{Document, escaped};

use crate::digits::Digits;
use crate::published::{Claim, Column};
use crate::side_by_side::{mark, remarks, tallies, tally};
use crate::verdict::Verdict;
use crate::{JudgedCell, Report, ReproducedTable};

/// Titles of the papers by the first part of a key.
const PAPERS: [(&str, &str); 6] = [
    ("heidemann-model", "Modeling the Performance of HTTP Over Several Transport Protocols, 1997"),
    ("p-http", "Performance Interactions Between P-HTTP and TCP Implementations, 1997"),
    ("w3c", "Network Performance Effects of HTTP/1.1, CSS1, and PNG, 1997"),
    ("dhttp", "DHTTP: An Efficient and Cache-Friendly Transfer Protocol for the Web, 2004"),
    ("today", "Later studies of HTTP/2, HTTP/3 and TLS"),
    ("roundtrip", "Our own studies: one engine against another"),
];

/// The page.
pub fn page(report: &Report) -> String {
    let mut main = String::new();
    let mut paper = "";
    for table in &report.tables {
        let key = table.entry.key;
        let this = key.split_once('/').map_or(key, |(paper, _)| paper);
        if this != paper {
            let title = PAPERS.iter().find(|(known, _)| *known == this).map_or(this, |(_, title)| title);
            main += &format!("<h2>{}</h2>\n", escaped(title));
            paper = this;
        }
        main += &section(table, report.picture(table.entry).as_deref());
    }
    let lead: String = tallies(report).iter().map(|line| format!("<p>{}</p>\n", escaped(line))).collect();
    let lead = format!("<div class=\"lead\">\n{lead}</div>\n");
    let end = format!("<footer>roundtrip {}</footer>\n", env!("CARGO_PKG_VERSION"));
    Document {
        title: "Published and ours",
        heading: "Published and ours",
        lead: &lead,
        main: &main,
        end: &end,
    }
    .text()
}

/// One table or figure. Its element names its verdicts, for scripts.
fn section(reproduced: &ReproducedTable, picture: Option<&str>) -> String {
    let ReproducedTable { entry, table, judgements, says } = reproduced;
    let all: Vec<&JudgedCell> = judgements.iter().collect();
    let has = |verdict: &Verdict| all.iter().any(|judged| judged.judgement.verdict == *verdict);
    let verdicts: Vec<&str> = Verdict::ALL.into_iter().filter(has).map(Verdict::name).collect();
    let contents = if table.claims.is_empty() { cells(reproduced) } else { claims(reproduced) };
    let facts = [
        ("What it says", says.as_deref().unwrap_or_default()),
        ("Source", &table.source),
        ("Scenario", &table.scenario),
        ("Agreement", &table.agreement),
    ];
    let facts = facts.into_iter().filter(|(_, text)| !text.is_empty());
    let facts: String =
        facts.map(|(name, text)| format!("<dt>{name}</dt><dd>{}</dd>\n", escaped(text))).collect();
    format!(
        "<section id=\"{key}\" data-verdicts=\"{}\">\n<h3>{}</h3>\n<p class=\"facts\">{key}: {}</p>\n{}{contents}<dl>\n\
         {facts}</dl>\n</section>\n",
        verdicts.join(" "),
        escaped(&table.title),
        tally(&all),
        picture.map(image).unwrap_or_default(),
        key = entry.key,
    )
}

/// The picture as an image: its colours are those of paper, whatever the page's, and its names are its own.
fn image(svg: &str) -> String {
    let between = |tag: &str| {
        let start = svg.find(&format!("<{tag}>"))? + tag.len() + 2;
        svg.get(start..start + svg[start..].find(&format!("</{tag}>"))?)
    };
    let description = [between("title"), between("desc")].map(Option::unwrap_or_default).join(": ");
    let address = svg.replace('%', "%25").replace('#', "%23").replace('\n', "%0A");
    format!(
        "<div class=\"scroll\"><img class=\"figure\" alt=\"{description}\" src=\"data:image/svg+xml,{}\"></div>\n",
        escaped(&address)
    )
}

/// A table in the paper's own layout, and the notes on its cells.
fn cells(reproduced: &ReproducedTable) -> String {
    let table = &reproduced.table;
    let labels: String = table.labels.iter().map(|label| format!("<th>{}</th>", escaped(label))).collect();
    let columns: String = table.columns.iter().map(heading).collect();
    let mut judged = reproduced.judgements.iter();
    let mut rows = String::new();
    for row in &table.rows {
        let (labels, texts) = row.split_at(table.labels.len().min(row.len()));
        rows += "<tr>";
        rows.extend(labels.iter().map(|label| format!("<th scope=\"row\">{}</th>", escaped(label))));
        rows.extend(texts.iter().map(|text| match text.is_empty() {
            true => "<td></td>".to_owned(),
            false => judged.next().map(pair).unwrap_or_default(),
        }));
        rows += "</tr>\n";
    }
    let notes: String = remarks(reproduced)
        .into_iter()
        .map(|(verdict, remark)| {
            format!("<li>{} {}, {}</li>\n", mark(verdict), verdict.name(), escaped(&remark))
        })
        .collect();
    format!(
        "<div class=\"scroll\"><table class=\"pairs\">\n<thead><tr>{labels}{columns}</tr></thead>\n<tbody>\n{rows}</tbody>\n\
         </table></div>\n<p class=\"note\">In each cell: {}.</p>\n<ul class=\"notes\">\n{notes}</ul>\n",
        reproduced.sides()
    )
}

/// The unit of its numbers, if they have one.
fn unit(column: &Column) -> String {
    if column.unit == "ratio" { String::new() } else { escaped(&column.unit) }
}

fn heading(column: &Column) -> String {
    // Long names of several parts break between them.
    let name = escaped(&column.name).replace('-', "-<wbr>");
    format!("<th class=\"number\">{name}<br>{}</th>", unit(column))
}

/// Published, and ours with its mark below.
fn pair(judged: &JudgedCell) -> String {
    let JudgedCell { cell, judgement } = judged;
    format!(
        "<td class=\"number\">{}<br><b class=\"{}\">{}{}</b></td>",
        escaped(&cell.text),
        judgement.verdict.name(),
        ours(judged),
        mark(judgement.verdict)
    )
}

fn ours(judged: &JudgedCell) -> String {
    judged.judgement.ours.map_or_else(|| "-".to_owned(), |ours| judged.cell.column.digits.print(ours))
}

/// Claims of a text: the number, ours, and a note that begins with the claim's words.
fn claims(reproduced: &ReproducedTable) -> String {
    let row = |(claim, judged): (&Claim, &JudgedCell)| {
        let JudgedCell { cell, judgement } = judged;
        let Claim { claim: name, setting, digits, .. } = claim;
        let bound = match digits {
            Digits::AtLeast | Digits::AtMost => cell.column.name.replace('-', " ") + " ",
            Digits::Significant(_) | Digits::Decimals(_) | Digits::Whole => String::new(),
        };
        format!(
            "<tr><td><b>{}</b><br>{}</td><td class=\"number\">{bound}{} {}</td><td class=\"number\"><b class=\"{verdict}\">{}{}</b>\
             </td><td>{verdict}</td><td>{}</td></tr>\n",
            escaped(&name.replace('-', " ")),
            escaped(setting),
            escaped(&cell.text),
            unit(&cell.column),
            ours(judged),
            mark(judgement.verdict),
            escaped(judgement.note.as_deref().unwrap_or_default()),
            verdict = judgement.verdict.name(),
        )
    };
    let rows: String = reproduced.table.claims.iter().zip(&reproduced.judgements).map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"claims\">\n<thead><tr><th>claim</th><th class=\"number\">published</th>\
         <th class=\"number\">ours</th><th>verdict</th><th>note</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, run};

    fn written(keys: &[&str]) -> String {
        let keys = keys.iter().map(|key| (*key).to_owned()).collect();
        page(&run(Options { keys, ..Options::default() }).unwrap())
    }

    #[test]
    fn a_cell_has_published_and_ours_with_its_verdict() {
        let page = written(&["heidemann-model/table-7"]);
        assert!(page.contains("<td class=\"number\">12.8<br><b class=\"differs\">14.3!</b></td>"), "{page}");
        assert!(page.contains("<section id=\"heidemann-model/table-7\" data-verdicts=\"exact "), "{page}");
        assert!(page.contains("<li>! differs, http10/ethernet/basic:"), "{page}");
    }

    #[test]
    fn every_number_of_the_rows_is_on_the_page() {
        let keys = vec!["heidemann-model/table-6".to_owned(), "p-http/claims".to_owned()];
        let report = run(Options { keys, ..Options::default() }).unwrap();
        let (page, rows) = (page(&report), report.rows());
        assert!(rows.len() > 200);
        for verdict in Verdict::ALL {
            let cells = page.matches(&format!("<b class=\"{}\">", verdict.name())).count();
            assert_eq!(cells, rows.iter().filter(|row| row.verdict == verdict).count(), "{}", verdict.name());
        }
    }

    #[test]
    fn a_figure_is_an_image_with_its_title_and_no_characters_that_end_an_address() {
        let page = written(&["p-http/figure-3"]);
        let (_, image) = page.split_once("src=\"data:image/svg+xml,").unwrap();
        let (address, _) = image.split_once('"').unwrap();
        assert!(address.starts_with("&lt;svg ") && address.ends_with("&lt;/svg&gt;%0A"), "{address}");
        assert!(!address.contains('#'));
        assert!(page.contains("<img class=\"figure\" alt=\""), "{page}");
    }
}
