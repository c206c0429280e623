//! What PostgreSQL's errors mean for whoever asked.

use crate::store::StoreError;

/// Classes of SQLSTATE that blame the data: data exception, integrity constraint, and program limit
/// exceeded. Source: PostgreSQL's appendix A.
const OF_THE_DATA: [&str; 3] = ["22", "23", "54"];
/// Serialization failure and deadlock: the same transaction, tried again, may go through.
const TRY_AGAIN: [&str; 2] = ["40001", "40P01"];

/// An error while a statement ran.
pub(super) fn of(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(|error| error.code());
    let of_the_data =
        code.is_some_and(|code| OF_THE_DATA.iter().any(|class| code.starts_with(class)));
    if of_the_data || matches!(error, sqlx::Error::Encode(_)) {
        return StoreError::Refused(format!("PostgreSQL: {error}"));
    }
    // sqlx tries again and again to connect, and then tells of its pool and not of the server.
    if matches!(error, sqlx::Error::PoolTimedOut) {
        return StoreError::Unavailable(
            "PostgreSQL: no connection in 5 s; see that the server is up, can be reached, and has \
             connections to spare (max_connections)"
                .to_owned(),
        );
    }
    StoreError::Unavailable(format!("PostgreSQL: {error}"))
}

/// Whether the transaction lost against another and should simply be tried again.
pub(super) fn try_again(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| TRY_AGAIN.contains(&code.as_ref()))
}
