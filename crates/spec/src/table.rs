//! How a table is written: one row for each variant of an enum.

/// Defines a table and the function that finds the row of a variant.
///
/// A variant without a row does not compile, and neither does a variant with two rows. `else` gives the row of the
/// variants that the table does not list.
macro_rules! table {
    (
        $rows:ident, $find:ident($field:ident: $variants:ident) -> $row:ident {
            $($variant:ident: $value:expr,)*
        } $(else $other:pat => $otherwise:expr)?
    ) => {
        static $rows: &[$row] = &[$($row { $field: $variants::$variant, ..$value }),*];

        fn $find(of: &$variants) -> &'static $row {
            enum Place {
                $($variant),*
            }
            match of {
                $($variants::$variant => &$rows[Place::$variant as usize],)*
                $($other => $otherwise,)?
            }
        }
    };
}

pub(crate) use table;
