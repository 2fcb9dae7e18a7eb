//! Comma-separated values (RFC 4180).

/// Any table: a heading line and a line for each row.
pub fn table<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    std::iter::once(columns.map(str::to_owned)).chain(rows).map(line).collect()
}

/// One line of a table whose number of columns varies.
pub fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells.into_iter().map(|cell| quoted(&cell)).collect::<Vec<String>>().join(",") + "\r\n"
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_and_line_breaks_are_quoted() {
        let cells = ["plain", "a,b", "say \"x\"", ""].map(str::to_owned);
        assert_eq!(line(cells), "plain,\"a,b\",\"say \"\"x\"\"\",\r\n");
    }
}
