//! Functions of sets, which are lists in order and without doubles.

use super::super::bounds::{ITEM, MAX_VALUE};
use super::super::eval::types::sorted_set;
use super::super::eval::value::Val;
use super::args::list;
use super::{Context, Function, MANY, Outcome, Refused};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("setintersection", (1, MANY), |_, args| {
        let mut common = sorted_set(list(args, 0)?.to_vec());
        for at in 1..args.len() {
            let other = sorted_set(list(args, at)?.to_vec());
            common.retain(|item| other.binary_search_by(|other| other.compare(item)).is_ok());
        }
        Ok(Val::list(common)?)
    }),
    Function::new("setunion", (1, MANY), |_, args| {
        let mut items = Vec::new();
        for at in 0..args.len() {
            items.extend_from_slice(list(args, at)?);
        }
        Ok(Val::list(sorted_set(items))?)
    }),
    Function::moving("setproduct", (2, MANY), setproduct),
];

/// All ways to take one item of each list.
fn setproduct(_: &Context<'_>, args: &[Val]) -> Outcome {
    let mut count: usize = args.len();
    for at in 0..args.len() {
        count = count.saturating_mul(list(args, at)?.len());
    }
    if count > MAX_VALUE / ITEM {
        return Err(Refused::Exhausted);
    }
    let mut rows: Vec<Vec<Val>> = vec![Vec::new()];
    for at in 0..args.len() {
        let items = list(args, at)?;
        let longer = |row: Vec<Val>| {
            items.iter().map(move |item| {
                let mut row = row.clone();
                row.push(item.clone());
                row
            })
        };
        rows = rows.into_iter().flat_map(longer).collect();
    }
    let rows: Result<Vec<Val>, _> = rows.into_iter().map(Val::list).collect();
    Ok(Val::list(rows?)?)
}
