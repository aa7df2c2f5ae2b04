//! Containers of engines that say that they are ours, images that our records name, and engines that say nothing.

use std::io;

use drover_core::host::{Home, NamedAfter};

use super::homes::Homes;
use super::{Kind, Thing};
use crate::driver::docker::{Fate, FoundContainer, FoundImage, Inventory};

pub(super) fn things(inventory: &Inventory, homes: &Homes<'_>) -> io::Result<Vec<Thing>> {
    let found = inventory.find()?;
    let containers = found.containers.into_iter().map(|it| thing(it, homes));
    let silent = found.silent.into_iter().map(|(engine, why)| {
        let name = format!("engine unix://{}", engine.display());
        let thing = Thing::new(Kind::Container, name, Home::Unknown, NamedAfter::Nobody);
        Thing {
            remark: format!("containers and images there are not known: {}", why.trim()),
            ..thing
        }
    });
    let images = found.images.into_iter().map(image);
    Ok(containers.chain(silent).chain(images).collect())
}

/// An image that a record of ours names is ours.
fn image(found: FoundImage) -> Thing {
    let (named_after, remark) = match found.fate {
        Fate::Used(launch) => (NamedAfter::Launch(launch), String::new()),
        Fate::Awaited => (
            NamedAfter::Agent,
            "removed when no task has used it for a while".to_owned(),
        ),
        Fate::Kept => (
            NamedAfter::Agent,
            format!(
                "nothing uses it, and the settings keep it; to remove it: {}",
                found.removal()
            ),
        ),
        Fate::Left => (NamedAfter::Nobody, String::new()),
    };
    Thing {
        program: match found.is_whole {
            true => found.names.join(", "),
            false => "a tag alone".to_owned(),
        },
        remark,
        image: Some(found.clone()),
        ..Thing::new(Kind::Image, found.name(), Home::Ours, named_after)
    }
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
