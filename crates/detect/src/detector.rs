use std::any::Any;

use deloop_types::{Finding, Millis};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::Moment;

/// Finds one pattern. A detector is a unit struct. `Params` are its parameters. `Memory` is what it must remember
/// beyond the history; the session stores it.
///
/// ```
/// use deloop_detect::{Detector, Happening, Moment};
/// use deloop_types::Finding;
///
/// /// Finds calls of a forbidden tool.
/// struct Forbidden;
///
/// #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
/// #[serde(default)]
/// struct Params { tool: String }
///
/// impl Detector for Forbidden {
///     type Params = Params;
///     type Memory = u64;
///     fn name(&self) -> &'static str { "forbidden" }
///     fn page(&self) -> &'static str { "# forbidden" }
///     fn look(&self, params: &Params, moment: &Moment<'_>, seen: &mut u64) -> Option<Finding> {
///         let Happening::Call(call) = &moment.event else { return None };
///         if call.call.tool != params.tool { return None }
///         *seen += 1;
///         let mut finding = Finding::new(self.name(), *seen);
///         finding.since = moment.step;
///         Some(finding)
///     }
/// }
/// ```
pub trait Detector: Send + Sync + 'static {
    /// The parameters: the table `[detectors.NAME]` of a profile. Their `Default` is the only place where the defaults
    /// are defined.
    type Params: Clone + Default + Serialize + DeserializeOwned + Send + Sync;
    /// The state that the session stores for it. It must stay small, whatever the length of the session.
    type Memory: Default + Serialize + DeserializeOwned + Send + 'static;

    /// Returns the detector's name, which is the name of the pattern.
    fn name(&self) -> &'static str;

    /// Returns the detector's page: what it finds, examples that serve as its tests, and its parameters.
    fn page(&self) -> &'static str;

    /// Returns the JSON Schema of its parameters, for editors and for the check of a profile's keys. By default that is
    /// the names and types of their defaults.
    fn schema(&self) -> Value {
        let defaults = serde_json::to_value(Self::Params::default()).unwrap_or_default();
        let fields = defaults.as_object().into_iter().flatten();
        let property = |value: &Value| match value {
            Value::Bool(_) => json!({"type": "boolean", "default": value}),
            Value::Number(_) => json!({"type": "number", "default": value}),
            Value::String(_) => json!({"type": "string", "default": value}),
            other => json!({"default": other}),
        };
        let properties: serde_json::Map<String, Value> =
            fields.map(|(name, value)| (name.clone(), property(value))).collect();
        // Parameters without fields of their own, such as a map, take any key.
        let open = properties.is_empty();
        json!({"type": "object", "properties": properties, "additionalProperties": open})
    }

    /// Returns whether it compares the model's words, so that they must be known when a turn is judged.
    fn reads_words(&self) -> bool {
        false
    }

    /// Returns whether its findings are about the whole session, so that all agents of the session climb one ladder.
    fn whole_session(&self) -> bool {
        false
    }

    /// Returns whether it needs the failures that the project's other sessions met.
    fn reads_failures(&self) -> bool {
        false
    }

    /// Returns whether what it remembers belongs to the task that a step names, whichever agent works on it.
    fn follows_tasks(&self) -> bool {
        false
    }

    /// Checks what just happened.
    fn look(&self, params: &Self::Params, moment: &Moment<'_>, memory: &mut Self::Memory) -> Option<Finding>;

    /// Returns whether a memory holds something. One that doesn't takes no room; it must be the default one.
    fn remembers(&self, _memory: &Self::Memory) -> bool {
        size_of::<Self::Memory>() > 0
    }

    /// Returns the current streak, for detectors that count calls in a row. By default there is none.
    fn streak(&self, _params: &Self::Params, _memory: &Self::Memory) -> Option<Streak> {
        None
    }

    /// Notes that a finding of this detector led to a message or a refusal at this time. By default it isn't stored.
    fn warned(&self, _memory: &mut Self::Memory, _at: Millis) {}
}

/// How often in a row a detector has counted the same thing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Streak {
    /// Number of occurrences in a row, including the first.
    pub count: u64,
    /// The count from which it is a finding.
    pub at: u64,
    /// When one of its findings last led to a message or a refusal.
    pub warned: Option<Millis>,
}

/// A detector of any type, as stored in registries.
pub trait AnyDetector: Send + Sync {
    /// See [`Detector::name`].
    fn name(&self) -> &'static str;

    /// See [`Detector::page`].
    fn page(&self) -> &'static str;

    /// Returns the JSON Schema of its parameters.
    fn schema(&self) -> Value;

    /// Returns the default parameters.
    fn defaults(&self) -> Value;

    /// Creates the detector with these parameters.
    ///
    /// # Errors
    /// When a parameter has the wrong type.
    fn tune(&'static self, params: Value) -> Result<Box<dyn Tuned>, serde_json::Error>;
}

/// A detector with its parameters.
pub trait Tuned: Send + Sync {
    /// Returns the detector's name.
    fn name(&self) -> &'static str;

    /// See [`Detector::reads_words`].
    fn reads_words(&self) -> bool;

    /// See [`Detector::whole_session`].
    fn whole_session(&self) -> bool;

    /// See [`Detector::reads_failures`].
    fn reads_failures(&self) -> bool;

    /// See [`Detector::follows_tasks`].
    fn follows_tasks(&self) -> bool;

    /// Creates the memory for a new session.
    fn fresh(&self) -> Memory;

    /// Reads a memory from JSON.
    ///
    /// # Errors
    /// When the JSON isn't a memory of this detector.
    fn restore(&self, json: Value) -> Result<Memory, serde_json::Error>;

    /// Checks what just happened. A finding is rare and large, and most of these calls return none.
    fn look(&self, moment: &Moment<'_>, memory: &mut Memory) -> Option<Box<Finding>>;

    /// See [`Detector::streak`].
    fn streak(&self, memory: &Memory) -> Option<Streak>;

    /// See [`Detector::warned`].
    fn warned(&self, memory: &mut Memory, at: Millis);
}

/// The state that a session stores for one detector; nothing for the default state of a detector that says so.
#[derive(Default)]
pub struct Memory(Option<Box<dyn ErasedMemory>>);

impl Memory {
    /// Returns whether it holds nothing, and needn't be kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Serializes the memory as JSON, for a checkpoint.
    ///
    /// # Errors
    /// When the detector's memory can't be serialized as JSON.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        self.0.as_ref().map_or(Ok(Value::Null), |memory| memory.to_json())
    }

    fn of<D: Detector>(detector: &D, memory: D::Memory) -> Self {
        Self(detector.remembers(&memory).then(|| Box::new(memory) as Box<dyn ErasedMemory>))
    }

    fn own_mut<D: Detector>(&mut self) -> Option<&mut D::Memory> {
        // `as_any_mut` on the box itself would return the box, which is a memory too.
        self.0.as_mut()?.as_mut().as_any_mut().downcast_mut::<D::Memory>()
    }
}

trait ErasedMemory: Send {
    fn to_json(&self) -> Result<Value, serde_json::Error>;
    fn as_any(&self) -> &dyn Any;
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<M: Serialize + Send + 'static> ErasedMemory for M {
    fn to_json(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

struct With<D: Detector> {
    detector: &'static D,
    params: D::Params,
}

impl<D: Detector> AnyDetector for D {
    fn name(&self) -> &'static str {
        Detector::name(self)
    }

    fn page(&self) -> &'static str {
        Detector::page(self)
    }

    fn schema(&self) -> Value {
        Detector::schema(self)
    }

    fn defaults(&self) -> Value {
        serde_json::to_value(D::Params::default()).unwrap_or_default()
    }

    fn tune(&'static self, params: Value) -> Result<Box<dyn Tuned>, serde_json::Error> {
        Ok(Box::new(With { detector: self, params: serde_json::from_value(params)? }))
    }
}

impl<D: Detector> Tuned for With<D> {
    fn name(&self) -> &'static str {
        Detector::name(self.detector)
    }

    fn reads_words(&self) -> bool {
        Detector::reads_words(self.detector)
    }

    fn whole_session(&self) -> bool {
        Detector::whole_session(self.detector)
    }

    fn reads_failures(&self) -> bool {
        Detector::reads_failures(self.detector)
    }

    fn follows_tasks(&self) -> bool {
        Detector::follows_tasks(self.detector)
    }

    fn fresh(&self) -> Memory {
        Memory::of(self.detector, D::Memory::default())
    }

    fn restore(&self, json: Value) -> Result<Memory, serde_json::Error> {
        Ok(Memory::of(self.detector, serde_json::from_value::<D::Memory>(json)?))
    }

    fn look(&self, moment: &Moment<'_>, memory: &mut Memory) -> Option<Box<Finding>> {
        if memory.0.is_some() {
            return self.detector.look(&self.params, moment, memory.own_mut::<D>()?).map(Box::new);
        }
        let mut own = D::Memory::default();
        let found = self.detector.look(&self.params, moment, &mut own).map(Box::new);
        *memory = Memory::of(self.detector, own);
        found
    }

    fn streak(&self, memory: &Memory) -> Option<Streak> {
        let own = memory.0.as_ref()?.as_ref().as_any().downcast_ref::<D::Memory>()?;
        self.detector.streak(&self.params, own)
    }

    fn warned(&self, memory: &mut Memory, at: Millis) {
        if let Some(memory) = memory.own_mut::<D>() {
            self.detector.warned(memory, at);
        }
    }
}
