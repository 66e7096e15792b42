//! The values that handlers share, by their types.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// One value of each type.
#[derive(Default)]
pub(crate) struct States(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl States {
    /// Sets the value of a type.
    pub(crate) fn set<T: Send + Sync + 'static>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    pub(crate) fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.0.get(&TypeId::of::<T>()).and_then(|value| Arc::clone(value).downcast().ok())
    }
}
