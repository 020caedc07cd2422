//! The instance and its adapter.

use crate::config::Config;
use crate::device::{Device, range_error};
use crate::info::{FEATURES, downlevel, info, limits, without_graphics};
use crate::queue::Queue;
use crate::shared::Shared;
use crate::sink::lock;
use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use wgpu::custom::{
    AdapterInterface, DispatchAdapter, DispatchDevice, DispatchQueue, DispatchSurface, EnumerateAdapterFuture,
    InstanceInterface, RequestAdapterFuture, RequestDeviceFuture,
};
use wgpu::wgc::instance::CreateSurfaceError as CoreSurfaceError;
use wgpu::{
    AdapterInfo, Backend, Backends, CooperativeMatrixProperties, CreateSurfaceError, DeviceDescriptor,
    DownlevelCapabilities, Features, InstanceDescriptor, Limits, PresentationTimestamp, RequestAdapterOptions,
    RequestDeviceError, SurfaceTargetUnsafe, TextureFormat, TextureFormatFeatureFlags, TextureFormatFeatures,
    TextureUsages, WgslLanguageFeatures,
};

/// The devices of an instance.
type Devices = Arc<Mutex<Vec<Weak<Shared>>>>;

/// An instance with one adapter.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    config: Config,
    devices: Devices,
}

impl Instance {
    pub(crate) fn with(config: Config) -> Self {
        Self {
            config,
            devices: Devices::default(),
        }
    }

    fn adapter(&self) -> DispatchAdapter {
        DispatchAdapter::custom(Adapter {
            config: self.config.clone(),
            devices: Arc::clone(&self.devices),
        })
    }
}

impl InstanceInterface for Instance {
    fn new(_: InstanceDescriptor) -> Self {
        Self::default()
    }

    unsafe fn create_surface(&self, _: SurfaceTargetUnsafe) -> Result<DispatchSurface, CreateSurfaceError> {
        Err(CoreSurfaceError::BackendNotEnabled(Backend::Noop).into())
    }

    /// The adapter fits all options: no surface exists that it would not be compatible with.
    fn request_adapter(&self, _: &RequestAdapterOptions<'_, '_>) -> Pin<Box<dyn RequestAdapterFuture>> {
        Box::pin(ready(Ok(self.adapter())))
    }

    fn poll_all_devices(&self, _: bool) -> bool {
        let devices: Vec<Arc<Shared>> = lock(&self.devices).iter().filter_map(Weak::upgrade).collect();
        for device in devices {
            device.poll();
        }
        true
    }

    fn wgsl_language_features(&self) -> WgslLanguageFeatures {
        WgslLanguageFeatures::Packed4x8IntegerDotProduct | WgslLanguageFeatures::PointerCompositeAccess
    }

    fn enumerate_adapters(&self, _: Backends) -> Pin<Box<dyn EnumerateAdapterFuture>> {
        Box::pin(ready(vec![self.adapter()]))
    }
}

/// The adapter.
#[derive(Debug)]
struct Adapter {
    config: Config,
    devices: Devices,
}

/// The reason why there is no device.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error("the adapter lacks the features {0:?}")]
    Features(Features),
    #[error("the limit {name} is {limit}, and {required} is required")]
    Limit {
        name: &'static str,
        required: u64,
        limit: u64,
    },
    #[error("the machine does not start: {0}")]
    Start(#[from] crate::shared::StartError),
}

impl Adapter {
    fn request(&self, desc: &DeviceDescriptor<'_>) -> Result<Arc<Shared>, RequestError> {
        let missing = desc.required_features.difference(FEATURES);
        if !missing.is_empty() {
            return Err(RequestError::Features(missing));
        }
        // Programs that only compute request limits of graphics as well, because the defaults have
        // them.
        let mut required = desc.required_limits.clone();
        without_graphics(&mut required);
        let mut failed = None;
        required.check_limits_with_fail_fn(&self.limits(), true, |name, required, limit| {
            failed = Some(RequestError::Limit { name, required, limit });
        });
        if let Some(failed) = failed {
            return Err(failed);
        }
        let shared = Shared::new(self.config.clone(), desc.required_features, required, range_error)?;
        let shared = Arc::new(shared);
        let mut devices = lock(&self.devices);
        devices.retain(|device| device.strong_count() != 0);
        devices.push(Arc::downgrade(&shared));
        Ok(shared)
    }
}

impl AdapterInterface for Adapter {
    fn request_device(&self, desc: &DeviceDescriptor<'_>) -> Pin<Box<dyn RequestDeviceFuture>> {
        let device = match self.request(desc) {
            Ok(shared) => Ok((
                DispatchDevice::custom(Device::new(Arc::clone(&shared))),
                DispatchQueue::custom(Queue::new(shared)),
            )),
            Err(error) => Err(RequestDeviceError::from_message(error.to_string())),
        };
        Box::pin(ready(device))
    }

    fn is_surface_supported(&self, _: &DispatchSurface) -> bool {
        false
    }

    fn features(&self) -> Features {
        FEATURES
    }

    fn limits(&self) -> Limits {
        limits(&self.config)
    }

    fn downlevel_capabilities(&self) -> DownlevelCapabilities {
        downlevel()
    }

    fn get_info(&self) -> AdapterInfo {
        info()
    }

    fn get_texture_format_features(&self, _: TextureFormat) -> TextureFormatFeatures {
        TextureFormatFeatures {
            allowed_usages: TextureUsages::empty(),
            flags: TextureFormatFeatureFlags::empty(),
        }
    }

    fn get_presentation_timestamp(&self) -> PresentationTimestamp {
        PresentationTimestamp::INVALID_TIMESTAMP
    }

    fn cooperative_matrix_properties(&self) -> Vec<CooperativeMatrixProperties> {
        Vec::new()
    }
}
