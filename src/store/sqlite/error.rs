//! What SQLite's errors mean for whoever asked.

use crate::store::StoreError;

/// A result code that blames the data and not the machine (`SQLITE_TOOBIG`, `_CONSTRAINT`,
/// `_MISMATCH`, `_RANGE`); all others may pass by themselves.
const OF_THE_DATA: [i32; 4] = [18, 19, 20, 25];

/// An error while a statement ran.
pub(super) fn of(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|error| error.code());
    let code = code.and_then(|code| code.parse::<i32>().ok());
    match (code, &error) {
        (Some(code), _) if OF_THE_DATA.contains(&(code & 0xff)) => {
            StoreError::Refused(error.to_string())
        }
        (None, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Encode(_)) => {
            StoreError::Refused(error.to_string())
        }
        _ => unavailable(error),
    }
}

/// An error that says nothing about the data.
pub(super) fn unavailable(error: sqlx::Error) -> StoreError {
    StoreError::Unavailable(format!("SQLite: {error}"))
}

/// An error while the file was opened.
pub(super) fn opening(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        // SQLITE_NOTADB
        Some("26") => StoreError::Schema(
            "this file is no SQLite database; point store.url at another one".to_owned(),
        ),
        // SQLITE_CANTOPEN
        Some("14") => StoreError::Unavailable(
            "SQLite cannot open the file; see that this user may read and write it and its folder, \
             and that the disk is not read-only"
                .to_owned(),
        ),
        _ => unavailable(error),
    }
}
