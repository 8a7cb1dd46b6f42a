//! What commands answer on stdout.

use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Prints `text` as it is. A reader that has seen enough (`| head`) is no error.
///
/// # Errors
/// [`Failure::Environment`] when it cannot be written, as on a full disk.
pub fn print(text: &str) -> Result<(), Failure> {
    write(&mut io::stdout(), text)
}

fn write(out: &mut impl Write, text: &str) -> Result<(), Failure> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.map_err(Failure::environment),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Closed(ErrorKind);

    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_is_no_error_but_a_full_disk_is() {
        assert!(write(&mut Closed(ErrorKind::BrokenPipe), "text").is_ok());
        assert!(matches!(write(&mut Closed(ErrorKind::StorageFull), "text"), Err(Failure::Environment(_))));
    }
}
