//! A library that stands in for NVIDIA's: it has the names and shapes of NVML's C interface, and
//! GPUs that are made up. Tests load it as the real one is loaded.
//!
//! A file beside it, of its own name and `.conf`, says what there is. It is read in each call, so
//! what there is can change:
//!
//! ```text
//! gpus 2               # how many
//! model NVIDIA H7      # the name of all of them
//! mig 0 2              # GPU 0 is divided into 2
//! uuid 1 GPU-other     # GPU 1 is another one
//! lost 1               # GPU 1 fell off the bus
//! fail nvmlDeviceGetPowerUsage 3    # this call answers 3: not supported
//! hang nvmlDeviceGetCount_v2        # this call does not return, until this line is gone
//! ```

#![allow(
    non_snake_case,
    missing_docs,
    reason = "names and meaning are the interface's"
)]

mod config;

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong};

use config::{Config, Target, at};

const SUCCESS: c_uint = 0;
const INVALID_ARGUMENT: c_uint = 2;
const NOT_SUPPORTED: c_uint = 3;
const NOT_FOUND: c_uint = 6;
const INSUFFICIENT_SIZE: c_uint = 7;

const GIB: u64 = 1 << 30;

/// A device as callers hold it: a number that they do not look into.
type Handle = *mut Target;

/// Where a GPU is plugged in.
#[repr(C)]
pub struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    pci_device_id: c_uint,
    pci_sub_system_id: c_uint,
    bus_id: [c_char; 32],
}

/// Memory, in bytes.
#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// Memory that the machine sees, in bytes.
#[repr(C)]
pub struct Bar1 {
    total: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

/// Percent of the time.
#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

/// An answer, or the number of an error.
type Answer<T> = Result<T, c_uint>;

fn put<T>(to: *mut T, answer: Answer<T>) -> c_uint {
    match answer {
        Ok(_) if to.is_null() => INVALID_ARGUMENT,
        Ok(value) => {
            // SAFETY: callers give room for what they ask for, as the interface says.
            unsafe { to.write(value) };
            SUCCESS
        }
        Err(code) => code,
    }
}

fn put_text(to: *mut c_char, size: c_uint, answer: Answer<String>) -> c_uint {
    match answer {
        Ok(text) if text.len() >= size as usize => INSUFFICIENT_SIZE,
        Ok(text) => {
            // SAFETY: callers give room for `size` bytes, which the text and a zero fit in.
            unsafe {
                to.cast::<u8>().copy_from(text.as_ptr(), text.len());
                to.add(text.len()).write(0);
            }
            SUCCESS
        }
        Err(code) => code,
    }
}

/// A text in an array; the rest is zeros.
fn chars<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, byte) in array.iter_mut().zip(text.bytes()) {
        *to = c_char::from_ne_bytes([byte]);
    }
    array
}

/// What a call about a device answers, if it does not fail by order. `None`: a divided GPU does
/// not say this of its parts.
fn of<T>(
    call: &str,
    device: Handle,
    answer: impl FnOnce(&Config, Target) -> Option<T>,
) -> Answer<T> {
    let target = Target::of_handle(device.addr()).ok_or(INVALID_ARGUMENT)?;
    let config = at(call, Some(target))?;
    answer(&config, target).ok_or(NOT_SUPPORTED)
}

/// The same, of what only whole GPUs say.
fn of_whole<T>(call: &str, device: Handle, answer: impl FnOnce(u32) -> T) -> Answer<T> {
    of(call, device, |_, target| match target {
        Target::Whole(index) => Some(answer(index)),
        Target::Part(..) => None,
    })
}

fn handle(target: Target) -> Handle {
    std::ptr::without_provenance_mut(target.handle())
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_uint {
    at("nvmlInit_v2", None).err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_uint {
    at("nvmlShutdown", None).err().unwrap_or(SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(to: *mut c_char, size: c_uint) -> c_uint {
    let answer = at("nvmlSystemGetDriverVersion", None);
    put_text(to, size, answer.map(|_| "570.86.15".to_owned()))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(to: *mut c_uint) -> c_uint {
    let answer = at("nvmlDeviceGetCount_v2", None);
    put(to, answer.map(|config| config.gpus))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, to: *mut Handle) -> c_uint {
    let target = Target::Whole(index);
    let answer = at("nvmlDeviceGetHandleByIndex_v2", Some(target));
    put(
        to,
        answer.and_then(|config| match index < config.gpus {
            true => Ok(handle(target)),
            false => Err(INVALID_ARGUMENT),
        }),
    )
}

/// # Safety
/// `uuid` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(uuid: *const c_char, to: *mut Handle) -> c_uint {
    // SAFETY: as the interface says.
    let uuid = unsafe { CStr::from_ptr(uuid) };
    let found = at("nvmlDeviceGetHandleByUUID", None).and_then(|config| {
        let mut all = config.targets().into_iter();
        let named = all.find(|target| config.uuid(*target).as_bytes() == uuid.to_bytes());
        named.ok_or(NOT_FOUND)
    });
    // A lost one is not found either.
    let found =
        found.and_then(|target| at("nvmlDeviceGetHandleByUUID", Some(target)).map(|_| target));
    put(to, found.map(handle))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetName(device: Handle, to: *mut c_char, size: c_uint) -> c_uint {
    let name = of("nvmlDeviceGetName", device, |config, target| {
        Some(match target {
            Target::Whole(_) => config.model.clone(),
            Target::Part(..) => format!("{} MIG 1g.10gb", config.model),
        })
    });
    put_text(to, size, name)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUUID(device: Handle, to: *mut c_char, size: c_uint) -> c_uint {
    let uuid = of("nvmlDeviceGetUUID", device, |config, target| {
        Some(config.uuid(target))
    });
    put_text(to, size, uuid)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPciInfo_v3(device: Handle, to: *mut PciInfo) -> c_uint {
    let answer = of_whole("nvmlDeviceGetPciInfo_v3", device, |index| PciInfo {
        bus_id_legacy: chars(&format!("0000:{index:02X}:00.0")),
        domain: 0,
        bus: index,
        device: 0,
        pci_device_id: 0,
        pci_sub_system_id: 0,
        bus_id: chars(&format!("00000000:{index:02X}:00.0")),
    });
    put(to, answer)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigMode(
    device: Handle,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> c_uint {
    let mode = of("nvmlDeviceGetMigMode", device, |config, target| {
        let Target::Whole(index) = target else {
            return None;
        };
        Some(c_uint::from(config.parts(index) > 0))
    });
    match put(pending, mode) {
        SUCCESS => put(current, mode),
        error => error,
    }
}

/// There is one slot more than there are parts, and the first is empty.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxMigDeviceCount(device: Handle, to: *mut c_uint) -> c_uint {
    let count = of(
        "nvmlDeviceGetMaxMigDeviceCount",
        device,
        |config, target| {
            let Target::Whole(index) = target else {
                return None;
            };
            Some(config.parts(index) + 1)
        },
    );
    put(to, count)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    device: Handle,
    slot: c_uint,
    to: *mut Handle,
) -> c_uint {
    let found = of(
        "nvmlDeviceGetMigDeviceHandleByIndex",
        device,
        |config, target| {
            let Target::Whole(index) = target else {
                return None;
            };
            let there = slot > 0 && slot <= config.parts(index);
            Some(there.then(|| handle(Target::Part(index, slot - 1))))
        },
    );
    put(to, found.and_then(|found| found.ok_or(NOT_FOUND)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Handle, to: *mut Memory) -> c_uint {
    let answer = of("nvmlDeviceGetMemoryInfo_v2", device, |_, target| {
        let total = match target {
            Target::Whole(_) => 80 * GIB,
            Target::Part(..) => 10 * GIB,
        };
        Some(Memory {
            version: 0,
            total,
            reserved: 0,
            free: total - GIB,
            used: GIB,
        })
    });
    put(to, answer)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetBAR1MemoryInfo(device: Handle, to: *mut Bar1) -> c_uint {
    let answer = of_whole("nvmlDeviceGetBAR1MemoryInfo", device, |_| Bar1 {
        total: 128 * GIB,
        free: 128 * GIB - (2 << 20),
        used: 2 << 20,
    });
    put(to, answer)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetEnforcedPowerLimit(device: Handle, to: *mut c_uint) -> c_uint {
    put(
        to,
        of_whole("nvmlDeviceGetEnforcedPowerLimit", device, |_| 700_000),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(device: Handle, to: *mut c_uint) -> c_uint {
    let power = |index| 70_999 + 1000 * index;
    put(to, of_whole("nvmlDeviceGetPowerUsage", device, power))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxClockInfo(
    device: Handle,
    kind: c_int,
    to: *mut c_uint,
) -> c_uint {
    let clock = of_whole("nvmlDeviceGetMaxClockInfo", device, |_| match kind {
        2 => 2619,
        _ => 1980,
    });
    put(to, clock)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxPcieLinkGeneration(device: Handle, to: *mut c_uint) -> c_uint {
    put(
        to,
        of_whole("nvmlDeviceGetMaxPcieLinkGeneration", device, |_| 5),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxPcieLinkWidth(device: Handle, to: *mut c_uint) -> c_uint {
    put(
        to,
        of_whole("nvmlDeviceGetMaxPcieLinkWidth", device, |_| 16),
    )
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetDisplayActive(device: Handle, to: *mut c_uint) -> c_uint {
    put(to, of_whole("nvmlDeviceGetDisplayActive", device, |_| 0))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPersistenceMode(device: Handle, to: *mut c_uint) -> c_uint {
    put(to, of_whole("nvmlDeviceGetPersistenceMode", device, |_| 1))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUtilizationRates(device: Handle, to: *mut Utilization) -> c_uint {
    let rates = of_whole("nvmlDeviceGetUtilizationRates", device, |index| {
        Utilization {
            gpu: 40 + index,
            memory: 0,
        }
    });
    put(to, rates)
}

fn coder(call: &str, device: Handle, percent: u32, to: *mut c_uint, period: *mut c_uint) -> c_uint {
    let answer = of_whole(call, device, |_| percent);
    match put(period, answer.map(|_| 1000)) {
        SUCCESS => put(to, answer),
        error => error,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetEncoderUtilization(
    device: Handle,
    to: *mut c_uint,
    period: *mut c_uint,
) -> c_uint {
    coder("nvmlDeviceGetEncoderUtilization", device, 3, to, period)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetDecoderUtilization(
    device: Handle,
    to: *mut c_uint,
    period: *mut c_uint,
) -> c_uint {
    coder("nvmlDeviceGetDecoderUtilization", device, 0, to, period)
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTemperature(device: Handle, _: c_int, to: *mut c_uint) -> c_uint {
    put(to, of_whole("nvmlDeviceGetTemperature", device, |_| 34))
}

/// Errors are not counted in the caches.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMemoryErrorCounter(
    device: Handle,
    _kind: c_int,
    _counter: c_int,
    place: c_int,
    to: *mut c_ulonglong,
) -> c_uint {
    let errors = of_whole("nvmlDeviceGetMemoryErrorCounter", device, |_| match place {
        2 => Ok(0),
        _ => Err(NOT_SUPPORTED),
    });
    put(to, errors.and_then(|errors| errors))
}
