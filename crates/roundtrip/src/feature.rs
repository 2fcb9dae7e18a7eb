//! Cargo features, and the error for a missing one.
//!
//! A feature only selects what is compiled.

/// Optional part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The verbs besides `diagnose` and `watch`.
    AllVerbs,
    /// Images as WebP and AVIF.
    ImageCodecs,
    /// The laboratory's page.
    LabPage,
    /// Logs in object stores and on the Web.
    ObjectStore,
    /// Parquet and Arrow tables.
    Parquet,
    /// Plots as PNG.
    Png,
}

impl Feature {
    /// All features, by name.
    pub const ALL: [Self; 6] =
        [Self::AllVerbs, Self::ImageCodecs, Self::LabPage, Self::ObjectStore, Self::Parquet, Self::Png];

    /// Name of the Cargo feature.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllVerbs => "all-verbs",
            Self::ImageCodecs => "image-codecs",
            Self::LabPage => "lab-page",
            Self::ObjectStore => "object-store",
            Self::Parquet => "parquet",
            Self::Png => "png",
        }
    }

    /// Whether it is compiled in.
    pub const fn is_built(self) -> bool {
        match self {
            Self::AllVerbs => cfg!(feature = "all-verbs"),
            Self::ImageCodecs => cfg!(feature = "image-codecs"),
            Self::LabPage => cfg!(feature = "lab-page"),
            Self::ObjectStore => cfg!(feature = "object-store"),
            Self::Parquet => cfg!(feature = "parquet"),
            Self::Png => cfg!(feature = "png"),
        }
    }

    const fn capability(self) -> &'static str {
        match self {
            Self::AllVerbs => "have verbs besides `diagnose` and `watch`",
            Self::ImageCodecs => "encode WebP and AVIF",
            Self::LabPage => "contain the page, which `./ci.sh lab` builds for it",
            Self::ObjectStore => "fetch logs from object stores and the Web",
            Self::Parquet => "read or write Parquet and Arrow tables",
            Self::Png => "write plots as PNG",
        }
    }

    /// The error for a file or a flag that needs a feature this build lacks.
    pub fn missing(self, culprit: &str) -> String {
        format!(
            "{culprit}: this build does not {}; install with `cargo install --locked --path crates/roundtrip --features {}`",
            self.capability(),
            self.name()
        )
    }

    /// Returns `Ok` where the feature was compiled in.
    ///
    /// # Errors
    /// [`missing`](Self::missing).
    pub fn require(self, culprit: &str) -> Result<(), String> {
        match self.is_built() {
            true => Ok(()),
            false => Err(self.missing(culprit)),
        }
    }
}

/// The output of `--version --verbose`: the version, and each feature on or off.
pub fn version() -> String {
    let features = Feature::ALL.map(|feature| {
        let state = if feature.is_built() { "on" } else { "off" };
        format!("  {:<12}  {state}\n", feature.name())
    });
    format!("roundtrip {}\nfeatures:\n{}", env!("CARGO_PKG_VERSION"), features.concat())
}
