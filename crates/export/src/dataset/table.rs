//! Tables for Parquet files: rows with named, typed columns.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A column of signed 64-bit integers.
    Int,
    Text,
    Bool,
}

impl ColumnType {
    /// The name of the column's type in SQL.
    pub fn name(self) -> &'static str {
        match self {
            ColumnType::Int => "bigint",
            ColumnType::Text => "string",
            ColumnType::Bool => "boolean",
        }
    }
}

/// A column of a table for a Parquet file: its name and its type.
pub type Column = (&'static str, ColumnType);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Int(i64),
    Text(String),
    Bool(bool),
}

/// A type that a value in a row of a table can have. `None` is stored as null.
pub(super) trait Field {
    const TYPE: ColumnType;
    fn value(self) -> Option<Value>;
}

impl Field for u64 {
    const TYPE: ColumnType = ColumnType::Int;
    fn value(self) -> Option<Value> {
        // A time beyond 292 years only occurs in a damaged trace.
        Some(Value::Int(i64::try_from(self).unwrap_or(i64::MAX)))
    }
}

impl Field for String {
    const TYPE: ColumnType = ColumnType::Text;
    fn value(self) -> Option<Value> {
        Some(Value::Text(self))
    }
}

impl Field for bool {
    const TYPE: ColumnType = ColumnType::Bool;
    fn value(self) -> Option<Value> {
        Some(Value::Bool(self))
    }
}

impl<T: Field> Field for Option<T> {
    const TYPE: ColumnType = T::TYPE;
    fn value(self) -> Option<Value> {
        self.and_then(T::value)
    }
}

pub(super) trait Row {
    const NAME: &'static str;
    const COLUMNS: &'static [Column];
    fn values(self) -> Vec<Option<Value>>;
}

/// Defines a struct whose values are the rows of a table, with a field for each column.
macro_rules! rows {
    ($(#[$doc:meta])* $row:ident = $name:literal { $($(#[$about:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(super) struct $row {
            $($(#[$about])* pub $field: $type,)*
        }

        impl $crate::dataset::table::Row for $row {
            const NAME: &'static str = $name;
            const COLUMNS: &'static [$crate::dataset::table::Column] = &[$((
                stringify!($field),
                <$type as $crate::dataset::table::Field>::TYPE,
            ),)*];

            fn values(self) -> Vec<Option<$crate::dataset::table::Value>> {
                vec![$($crate::dataset::table::Field::value(self.$field),)*]
            }
        }
    };
}
pub(super) use rows;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The name of the table, which is also the name of its directory.
    pub name: &'static str,
    pub columns: &'static [Column],
    /// The rows of the table. Each has a value for every column; `None` is null.
    pub rows: Vec<Vec<Option<Value>>>,
}

impl Table {
    pub(super) fn new<R: Row>(rows: impl IntoIterator<Item = R>) -> Table {
        Table {
            name: R::NAME,
            columns: R::COLUMNS,
            rows: rows.into_iter().map(R::values).collect(),
        }
    }
}
