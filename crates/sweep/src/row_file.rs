//! A file of rows, appended to as they are computed. Rows that an earlier run wrote are not computed again.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use lab::row;
use lab::setting::Setting;
use quantity::names::shown;
use scenario::Engine;
use scenario::spec::Grid;

/// File of rows, open behind its last scenario that has all of its rows.
#[derive(Debug)]
pub struct RowFile {
    path: PathBuf,
    out: BufWriter<File>,
    /// Number of scenarios whose rows it had.
    pub present: usize,
}

impl RowFile {
    /// Opens or creates the file of this grid's rows: for each scenario one by each engine, at least one. Rows of an incomplete
    /// last scenario are removed.
    ///
    /// # Errors
    /// A file that cannot be written, or that has other rows.
    pub fn open(path: &Path, grid: &Grid, engines: &[Engine], settings: &[Setting]) -> Result<Self, Error> {
        let failure = |error| Error::Write { path: path.to_owned(), error };
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failure)?;
        let heading = row::csv_heading(settings);
        let mut rows = Rows { reader: BufReader::new(&file), end: 0 };
        let present = match rows.next().map_err(failure)? {
            None => None,
            Some(first) if first == heading.as_bytes() => Some(rows.count(path, grid, engines, settings)?),
            Some(_) => return Err(other_rows(path, "its columns")),
        };
        let end = rows.end;
        drop(rows);
        let mut file = file;
        if file.metadata().map_err(failure)?.len() > end {
            file.set_len(end).map_err(failure)?;
        }
        // A pipe or a terminal has no positions.
        if file.metadata().map_err(failure)?.is_file() {
            file.seek(SeekFrom::Start(end)).map_err(failure)?;
        }
        let mut row_file =
            Self { path: path.to_owned(), out: BufWriter::new(file), present: present.unwrap_or_default() };
        if present.is_none() {
            row_file.append(&heading)?;
        }
        Ok(row_file)
    }

    /// Appends a complete line.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn append(&mut self, line: &str) -> Result<(), Error> {
        self.out.write_all(line.as_bytes()).map_err(|error| Error::Write { path: self.path.clone(), error })
    }

    /// Writes what was appended, so that an interrupted run loses little.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(|error| Error::Write { path: self.path.clone(), error })
    }
}

fn other_rows(path: &Path, part: &'static str) -> Error {
    Error::OtherRows { path: path.to_owned(), part }
}

/// Error of a file of rows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be read.
    #[error("cannot read {}: {error}", shown(.path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It cannot be written.
    #[error("cannot write {}: {error}", shown(.path))]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// It has rows of another run.
    #[error("{}: {part} are of another run; name another file, or remove it", shown(.path))]
    OtherRows {
        /// The file.
        path: PathBuf,
        /// The part that differs.
        part: &'static str,
    },
}

/// Complete rows of a file, which end outside quotes.
struct Rows<R> {
    reader: R,
    /// Position behind the last complete row.
    end: u64,
}

/// Maximum length of a row: the notes of one have a few thousand bytes.
const MAX_ROW_BYTES: usize = 1 << 24;

impl<R: BufRead> Rows<R> {
    /// The next complete row with its line break; `None` at the end, or before an incomplete row.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut row = Vec::new();
        loop {
            let before = row.len();
            if self.reader.read_until(b'\n', &mut row)? == 0 || row.len() > MAX_ROW_BYTES {
                return Ok(None);
            }
            let is_ended =
                row.ends_with(b"\r\n") && row.iter().filter(|byte| **byte == b'"').count() % 2 == 0;
            if is_ended {
                self.end += row.len() as u64;
                return Ok(Some(row));
            }
            if row.len() == before {
                return Ok(None);
            }
        }
    }

    /// Number of scenarios with all of their rows, each of which must be of the grid's scenario and of the engine at its place.
    /// Leaves `end` behind the last of them.
    fn count(
        &mut self,
        path: &Path,
        grid: &Grid,
        engines: &[Engine],
        settings: &[Setting],
    ) -> Result<usize, Error> {
        let (mut count, mut end) = (0, self.end);
        while let Some(row) = self.next().map_err(|error| Error::Read { path: path.to_owned(), error })? {
            let (number, engine) = (count / engines.len(), count % engines.len());
            if number == grid.len() {
                return Err(other_rows(path, "its last rows"));
            }
            let identity = row::csv_identity(&grid.scenario(number), engines[engine], settings);
            if !row.starts_with(identity.as_bytes()) {
                return Err(other_rows(path, "its rows"));
            }
            count += 1;
            if count % engines.len() == 0 {
                end = self.end;
            }
        }
        self.end = end;
        Ok(count / engines.len())
    }
}

#[cfg(test)]
mod tests {
    use scenario::{Defaults, Spec};

    use super::*;

    #[test]
    fn a_scenario_that_lacks_an_engine_is_incomplete() {
        let spec = Spec::from_toml("network = 'modem'\nprotocol = ['http11', 'http10']", "file").unwrap();
        let grid = spec.grid(&Defaults::laboratory()).unwrap();
        let engines = [Engine::Model, Engine::Simulate];
        let rows = |count: usize| -> String {
            let identity = |number| row::csv_identity(&grid.scenario(number / 2), engines[number % 2], &[]);
            (0..count).map(|number| identity(number) + "1\r\n").collect()
        };
        for (count, scenarios) in [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2)] {
            let text = rows(count);
            let mut reader = Rows { reader: text.as_bytes(), end: 0 };
            assert_eq!(reader.count(Path::new("rows"), &grid, &engines, &[]).unwrap(), scenarios);
            assert_eq!(reader.end, rows(2 * scenarios).len() as u64);
        }
        let text = rows(4) + &rows(1);
        let mut reader = Rows { reader: text.as_bytes(), end: 0 };
        assert!(reader.count(Path::new("rows"), &grid, &engines, &[]).is_err());
    }

    #[test]
    fn rows_end_outside_quotes_and_an_incomplete_one_is_none() {
        let text = b"a,b\r\n1,\"x\r\ny\"\r\n2,\"z";
        let mut rows = Rows { reader: text.as_slice(), end: 0 };
        assert_eq!(rows.next().unwrap().unwrap(), b"a,b\r\n");
        assert_eq!(rows.next().unwrap().unwrap(), b"1,\"x\r\ny\"\r\n");
        assert_eq!(rows.next().unwrap(), None);
        assert_eq!(rows.end, text.len() as u64 - 4);
    }
}
