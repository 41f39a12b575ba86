//! Tables: rows with named, typed columns.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A signed 64-bit integer.
    Int,
    Text,
    Bool,
}

impl Kind {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Int => "bigint",
            Kind::Text => "string",
            Kind::Bool => "boolean",
        }
    }
}

/// A column: its name and its type.
pub type Column = (&'static str, Kind);

/// A value; `None` in every type is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of a [`Kind::Int`].
    Int(Option<i64>),
    /// Of a [`Kind::Text`].
    Text(Option<String>),
    /// Of a [`Kind::Bool`].
    Bool(Option<bool>),
}

/// A type of a row's field.
pub(super) trait Field {
    const KIND: Kind;
    fn value(self) -> Value;
}

impl Field for u64 {
    const KIND: Kind = Kind::Int;
    fn value(self) -> Value {
        Some(self).value()
    }
}

impl Field for Option<u64> {
    const KIND: Kind = Kind::Int;
    fn value(self) -> Value {
        // A time beyond 292 years is a damaged trace's.
        Value::Int(self.map(|value| i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl Field for String {
    const KIND: Kind = Kind::Text;
    fn value(self) -> Value {
        Some(self).value()
    }
}

impl Field for Option<String> {
    const KIND: Kind = Kind::Text;
    fn value(self) -> Value {
        Value::Text(self)
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Bool;
    fn value(self) -> Value {
        Value::Bool(Some(self))
    }
}

pub(super) trait Row {
    const NAME: &'static str;
    const COLUMNS: &'static [Column];
    fn values(self) -> Vec<Value>;
}

/// Defines the rows of a table: a field for each column.
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
                <$type as $crate::dataset::table::Field>::KIND,
            ),)*];

            fn values(self) -> Vec<$crate::dataset::table::Value> {
                vec![$($crate::dataset::table::Field::value(self.$field),)*]
            }
        }
    };
}
pub(super) use rows;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name, and that of its directory.
    pub name: &'static str,
    pub columns: &'static [Column],
    /// Its rows, each with a value for every column.
    pub rows: Vec<Vec<Value>>,
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
