//! The inbox on PostgreSQL.
