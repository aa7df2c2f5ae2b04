//! The driver's library, loaded and asked. Every call may block for as long as the driver likes,
//! so nothing of this is called where that hurts.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use nvml_wrapper::Device;
use nvml_wrapper::Nvml;
use nvml_wrapper::enum_wrappers::device::{
    Clock, EccCounter, MemoryError, MemoryLocation, TemperatureSensor,
};
use nvml_wrapper::error::NvmlError;

use super::gpu::{Facts, Gpu, Part, Used, pci_bandwidth};

/// The name by which drivers bring it.
const NAME: &str = "libnvidia-ml.so.1";

/// What loaders say of a library that is not there; they have no number for it.
const NO_FILE: &str = "No such file or directory";

/// How many GPUs are looked at.
const MOST: u32 = 256;

/// How many MIG instances of one GPU are looked at.
const MOST_INSTANCES: u32 = 64;

/// Why the library cannot be asked.
#[derive(Debug)]
pub(super) enum LoadError {
    /// It is not there: this machine has no GPUs of this maker, or no driver for them.
    Absent(String),
    /// It is there and does not work.
    Broken(String),
}

/// The library.
pub(super) struct Library {
    nvml: Nvml,
    driver_version: Option<String>,
    /// The GPUs of each card, as they were when it last answered. A lost one does not even tell
    /// its name any more.
    last: BTreeMap<u32, Vec<Gpu>>,
}

impl Library {
    /// Loads it and lets it find the driver.
    pub(super) fn load(path: Option<&OsStr>) -> Result<Library, LoadError> {
        let nvml = Nvml::builder()
            .lib_path(path.unwrap_or(OsStr::new(NAME)))
            .init();
        let nvml = nvml.map_err(|error| {
            let why = chain(&error);
            match error {
                // A path that somebody gave is to be right.
                NvmlError::LibloadingError(_) if path.is_none() && why.contains(NO_FILE) => {
                    LoadError::Absent(why)
                }
                _ => LoadError::Broken(why),
            }
        })?;
        Ok(Library {
            driver_version: nvml.sys_driver_version().ok(),
            nvml,
            last: BTreeMap::new(),
        })
    }

    /// Every GPU that tasks can have. One that was seen before and does not answer is there, with
    /// its trouble.
    ///
    /// # Errors
    /// The library does not even count them.
    pub(super) fn gpus(&mut self) -> Result<Vec<Gpu>, String> {
        let count = self.nvml.device_count();
        let count = count.map_err(|error| error.to_string())?.min(MOST);
        let mut now = BTreeMap::new();
        for index in 0..count {
            let gpus = self.card(index).unwrap_or_else(|error| {
                let why = error.to_string();
                let known = self.last.remove(&index).unwrap_or_default();
                if known.is_empty() {
                    tracing::debug!(index, why, "a GPU does not report its name");
                }
                let lost = known.into_iter().map(|gpu| Gpu {
                    trouble: Some(why.clone()),
                    ..gpu
                });
                lost.collect()
            });
            now.insert(index, gpus);
        }
        self.last = now;
        Ok(self.last.values().flatten().cloned().collect())
    }

    /// What a GPU uses. `None` if it does not answer.
    pub(super) fn used(&self, id: &str) -> Option<Used> {
        let device = self.nvml.device_by_uuid(id).ok()?;
        let mut ask = Ask::default();
        let used = used(&device, &mut ask);
        ask.trouble.is_none().then_some(used)
    }

    /// The GPU of this number, or the instances that it is divided into: then it is nobody's as a
    /// whole.
    fn card(&self, index: u32) -> Result<Vec<Gpu>, NvmlError> {
        let card = self.nvml.device_by_index(index)?;
        let id = card.uuid()?;
        let mut ask = Ask::default();
        let facts = self.facts(&card, &mut ask);
        let whole = Gpu {
            id,
            name: card.name()?,
            pci_bus_id: ask.of(card.pci_info()).map(|pci| pci.bus_id),
            trouble: None,
            facts,
        };
        let divided = ask
            .of(card.mig_mode())
            .is_some_and(|mode| mode.current == 1);
        let mut gpus = match divided {
            true => instances(&card, &whole, &mut ask),
            false => vec![whole],
        };
        for gpu in &mut gpus {
            gpu.trouble.clone_from(&ask.trouble);
        }
        Ok(gpus)
    }

    fn facts(&self, card: &Device<'_>, ask: &mut Ask) -> Facts {
        let generation = ask.of(card.max_pcie_link_gen());
        let lanes = ask.of(card.max_pcie_link_width());
        Facts {
            memory: ask.of(card.memory_info()).and_then(|it| mib(it.total)),
            power: ask.of(card.enforced_power_limit()).map(watts),
            bar1: ask.of(card.bar1_memory_info()).and_then(|it| mib(it.total)),
            driver_version: self.driver_version.clone(),
            cores_clock: ask.of(card.max_clock_info(Clock::SM)).map(i64::from),
            memory_clock: ask.of(card.max_clock_info(Clock::Memory)).map(i64::from),
            pci_bandwidth: generation
                .zip(lanes)
                .and_then(|(generation, lanes)| pci_bandwidth(generation, lanes)),
            display: ask.of(card.is_display_active()),
            persistence: ask.of(card.is_in_persistent_mode()),
        }
    }
}

/// The instances of a card that is divided. What they have of their own is theirs, and what they
/// share the card's; power is left out, because none of them may take all of it.
fn instances(card: &Device<'_>, whole: &Gpu, ask: &mut Ask) -> Vec<Gpu> {
    let slots = ask.of(card.mig_device_count()).unwrap_or(0);
    let instance = |slot| {
        // Slots may be empty.
        let part = card.mig_device_by_index(slot).ok()?;
        let memory = part.memory_info().ok();
        let bar1 = part.bar1_memory_info().ok();
        Some(Gpu {
            id: part.uuid().ok()?,
            name: part
                .name()
                .unwrap_or_else(|_| format!("{} MIG", whole.name)),
            facts: Facts {
                memory: memory.and_then(|it| mib(it.total)),
                bar1: bar1.and_then(|it| mib(it.total)),
                power: None,
                ..whole.facts.clone()
            },
            ..whole.clone()
        })
    };
    (0..slots.min(MOST_INSTANCES))
        .filter_map(instance)
        .collect()
}

fn used(device: &Device<'_>, ask: &mut Ask) -> Used {
    let busy = ask.of(device.utilization_rates());
    let memory = ask.of(device.memory_info());
    let bar1 = ask.of(device.bar1_memory_info());
    let power = Part {
        used: ask.of(device.power_usage()).map(watts),
        total: ask.of(device.enforced_power_limit()).map(watts),
    };
    let encoder = ask.of(device.encoder_utilization());
    let decoder = ask.of(device.decoder_utilization());
    let temperature = ask.of(device.temperature(TemperatureSensor::Gpu));
    let mut errors = |place| {
        let count =
            device.memory_error_counter(MemoryError::Uncorrected, EccCounter::Volatile, place);
        ask.of(count).and_then(|count| i64::try_from(count).ok())
    };
    Used {
        power,
        cores: busy.as_ref().map(|busy| i64::from(busy.gpu)),
        memory_busy: busy.as_ref().map(|busy| i64::from(busy.memory)),
        encoder: encoder.map(|it| i64::from(it.utilization)),
        decoder: decoder.map(|it| i64::from(it.utilization)),
        temperature: temperature.map(i64::from),
        memory: memory.map_or(Part::default(), |it| part(it.used, it.total)),
        bar1: bar1.map_or(Part::default(), |it| part(it.used, it.total)),
        ecc_l1: errors(MemoryLocation::L1Cache),
        ecc_l2: errors(MemoryLocation::L2Cache),
        ecc_memory: errors(MemoryLocation::Device),
    }
}

/// Takes answers. Most GPUs cannot say everything; only a few errors say that one is lost.
#[derive(Default)]
struct Ask {
    trouble: Option<String>,
}

impl Ask {
    fn of<T>(&mut self, answer: Result<T, NvmlError>) -> Option<T> {
        if let Err(error @ (NvmlError::GpuLost | NvmlError::ResetRequired)) = &answer {
            self.trouble.get_or_insert_with(|| error.to_string());
        }
        answer.ok()
    }
}

/// An error and what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn mib(bytes: u64) -> Option<i64> {
    i64::try_from(bytes >> 20).ok()
}

fn part(used: u64, total: u64) -> Part {
    Part {
        used: mib(used),
        total: mib(total),
    }
}

fn watts(milliwatts: u32) -> i64 {
    i64::from(milliwatts / 1000)
}
