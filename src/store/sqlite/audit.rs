//! The auditor on SQLite.

use sqlx::SqliteConnection;

use super::error::of;
use crate::store::Result;
use crate::store::query::AUDIT;

pub(super) async fn audit(connection: &mut SqliteConnection) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for (sentence, sql) in AUDIT {
        let count: i64 = sqlx::query_scalar(sql).fetch_one(&mut *connection).await.map_err(of)?;
        if count > 0 {
            found.push(format!("{count} {sentence}"));
        }
    }
    Ok(found)
}
