//! Devices that are declared in the agent's configuration, and what tasks are given of them.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use drover_core::model::device::GroupId;
use drover_io_real::device::DevicePlugin;
use drover_io_real::device::declared::{Declared, DeclaredDevices};

fn group(name: &str) -> GroupId {
    GroupId {
        vendor: "acme".to_owned(),
        kind: "fpga".to_owned(),
        name: name.to_owned(),
    }
}

#[tokio::test]
async fn device_is_given_of_the_group_that_was_asked_for() {
    // Each group counts its devices from 0.
    let declared = [("small", "/dev/null"), ("large", "/dev/zero")].map(|(name, node)| Declared {
        group: group(name),
        id: "0".to_owned(),
        nodes: vec![node.to_owned()],
        mounts: vec![node.to_owned()],
        env: [("FPGA".to_owned(), name.to_owned())].into(),
        ..Declared::default()
    });
    let devices = DeclaredDevices::new(declared.into());
    let ids = ["0".to_owned()];
    for (name, node) in [("small", "/dev/null"), ("large", "/dev/zero")] {
        let given = devices.reserve(&group(name), &ids).await.unwrap();
        let nodes = given.nodes.iter().map(|node| node.host_path.as_str());
        assert_eq!(nodes.collect::<Vec<_>>(), [node]);
        let mounts = given.mounts.iter().map(|mount| mount.host_path.as_str());
        assert_eq!(mounts.collect::<Vec<_>>(), [node]);
        assert_eq!(given.env["FPGA"], name);
    }
    assert!(devices.reserve(&group("other"), &ids).await.is_err());
}
