//! Defines tables of the page's document, in which each property has a column.

/// Defines a struct whose fields are the columns of a table, and the function that adds a row.
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

/// Replaces each number by its difference from the number before it.
pub fn differences<'c>(column: impl IntoIterator<Item = &'c mut i64>) {
    let mut before = 0;
    for number in column {
        let since = number.wrapping_sub(before);
        before = *number;
        *number = since;
    }
}
