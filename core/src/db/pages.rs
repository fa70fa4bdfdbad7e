//! Iterates over a large table in pages of ids, so that no statement reads all of it.

use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

/// The ids beyond the first, up to the second.
pub(crate) type Page = (Uuid, Uuid);

/// A walk through a table whose key is the UUID `id`.
pub(crate) struct Pages {
    table: &'static str,
    size: i64,
    /// The last id of the page before; `None` at the end.
    after: Option<Uuid>,
}

impl Pages {
    /// Starts a walk through `table` in pages of `size` rows.
    pub(crate) const fn of(table: &'static str, size: i64) -> Self {
        Self { table, size, after: Some(Uuid::nil()) }
    }

    /// Returns the next page; `None` after the last, which has all ids that are greater.
    pub(crate) async fn next(&mut self, pool: &PgPool) -> sqlx::Result<Option<Page>> {
        let Some(first) = self.after else { return Ok(None) };
        let table = self.table;
        let query = format!("select id from {table} where id > $1 order by id offset $2 limit 1");
        self.after = sqlx::query_scalar(AssertSqlSafe(query))
            .bind(first)
            .bind(self.size - 1)
            .fetch_optional(pool)
            .await?;
        Ok(Some((first, self.after.unwrap_or(Uuid::max()))))
    }
}
