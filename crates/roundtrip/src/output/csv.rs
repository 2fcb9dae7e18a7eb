//! Comma-separated values (RFC 4180), in full precision.

/// One line of any table, ended as the RFC has it.
pub fn line<const N: usize>(cells: [String; N]) -> String {
    cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
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
    fn what_would_break_a_line_is_quoted() {
        let cells = ["plain", "a,b", "say \"x\"", ""].map(str::to_owned);
        assert_eq!(line(cells), "plain,\"a,b\",\"say \"\"x\"\"\",\r\n");
    }
}
