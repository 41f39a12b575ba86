//! Defines tables of the JSON document in an HTML report. Each property of a table is stored as one
//! list (a column), not as a field of each row.

/// Defines a struct that is a table: each of its fields is a list with the column's values, and its
/// function `push` adds a row.
macro_rules! columns {
    ($name:ident($($arg:ident: $type:ty),*) { $($column:ident: $of:ty = $value:expr,)* }) => {
        #[derive(Default, serde::Serialize)]
        pub struct $name {
            $($column: Vec<$of>,)*
        }

        impl $name {
            fn push(&mut self, $($arg: $type),*) {
                $(self.$column.push($value);)*
            }
        }
    };
}

/// Replaces each number of a column by its difference from the previous number, because small numbers compress better.
pub fn differences<'c>(column: impl IntoIterator<Item = &'c mut i64>) {
    let mut before = 0;
    for number in column {
        let since = number.wrapping_sub(before);
        before = *number;
        *number = since;
    }
}
