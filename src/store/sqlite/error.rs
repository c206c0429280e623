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
