//! What becomes of a body: cut into rows, checked against the table, kept on disk, shown again.

mod check;
mod csv;
mod load;
mod split;
mod store;
mod view;

pub(crate) use check::Checker;
pub(crate) use load::{LoadError, Loader, RowCounts};
pub(crate) use split::Layout;
pub(crate) use store::RowStore;
pub(crate) use view::{RowsAs, View};
