//! Containers of engines that say that they are ours, and engines that say nothing.

use std::io;

use drover_core::host::{Home, NamedAfter};

use super::homes::Homes;
use super::{Kind, Thing};
use crate::driver::docker::{FoundContainer, Inventory};

pub(super) fn things(inventory: &Inventory, homes: &Homes<'_>) -> io::Result<Vec<Thing>> {
    let found = inventory.find()?;
    let containers = found.containers.into_iter().map(|it| thing(it, homes));
    let silent = found.silent.into_iter().map(|(engine, why)| {
        let name = format!("engine unix://{}", engine.display());
        let thing = Thing::new(Kind::Container, name, Home::Unknown, NamedAfter::Nobody);
        Thing {
            remark: format!("containers there are not known: {}", why.trim()),
            ..thing
        }
    });
    Ok(containers.chain(silent).collect())
}

fn thing(found: FoundContainer, homes: &Homes<'_>) -> Thing {
    let home = match (found.is_proved, &found.mark) {
        (true, _) => Home::Ours,
        (false, Some(mark)) => homes.of_mark(mark),
        (false, None) => Home::Unknown,
    };
    let remark = match found.is_proved {
        true => String::new(),
        false => format!(
            "no record says that it is ours; to remove it: {}",
            found.removal()
        ),
    };
    Thing {
        program: found.image.clone(),
        remark,
        container: Some(found.clone()),
        ..Thing::new(
            Kind::Container,
            found.name,
            home,
            NamedAfter::Launch(found.launch),
        )
    }
}
