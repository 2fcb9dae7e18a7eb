//! Named pages: the six workloads of `papers/heidemann-model#workloads`, and the page of the W3C note.
//! The latter exists as in the model's paper (sizes) and as reconstructed (files). kB is 1024 bytes.

use std::sync::LazyLock;

use quantity::names::{Listing, UnknownName};
use wire::{Bytes, Seed};

use crate::contents::file;
use crate::{Object, Page, Site};

impl Page {
    /// The page of that name.
    ///
    /// # Errors
    /// [`UnknownName`] for any other name, with the nearest and all the others.
    pub fn named(name: &str) -> Result<Self, UnknownName> {
        CATALOGUE
            .iter()
            .find(|entry| entry.listing.name == name)
            .map(Entry::page)
            .ok_or_else(|| UnknownName::new("page", name, CATALOGUE.iter().map(|entry| entry.listing.name)))
    }

    /// The six workloads of the papers' tables III, IV and VI, in their order; `--page all`.
    pub fn six() -> Vec<Self> {
        CATALOGUE[..6].iter().map(Entry::page).collect()
    }

    /// Every named page: the six, then `w3c-page` and `microscape`, which has real contents.
    pub fn all() -> Vec<Self> {
        CATALOGUE.iter().map(Entry::page).collect()
    }

    /// Descriptions of the names, in the order of [`Page::all`].
    pub fn listings() -> impl Iterator<Item = Listing> {
        CATALOGUE.iter().map(|entry| entry.listing)
    }
}

struct Entry {
    listing: Listing,
    definition: PageDefinition,
}

/// Definition of a page.
enum PageDefinition {
    /// Objects of these sizes; the first has another after deflate.
    Sizes(&'static [u64], Option<Bytes>),
    /// The files of a site.
    Generated(Site),
}

impl Entry {
    fn page(&self) -> Page {
        let name = self.listing.name;
        match self.definition {
            PageDefinition::Sizes(sizes, deflated) => {
                let mut objects: Vec<_> = sizes.iter().map(|size| Object::sized(Bytes::new(*size))).collect();
                if let Some(document) = objects.first_mut() {
                    document.deflated = deflated;
                }
                Page::of(name, objects)
            }
            PageDefinition::Generated(Site::Microscape) => {
                static MICROSCAPE: LazyLock<Page> = LazyLock::new(|| {
                    let files = Site::Microscape.files(Seed::default());
                    let files = files
                        .into_iter()
                        .map(|site_file| file(&site_file.path, site_file.contents))
                        .collect();
                    Page::real("microscape", files).expect("43 files")
                });
                MICROSCAPE.clone()
            }
        }
    }
}

const fn workload(name: &'static str, description: &'static str, sizes: &'static [u64]) -> Entry {
    let listing = Listing { name, description, source: "papers/heidemann-model#workloads" };
    Entry { listing, definition: PageDefinition::Sizes(sizes, None) }
}

const KB: u64 = 1024;

const CATALOGUE: [Entry; 8] = [
    workload("small-page", "one page of 5 kB", &[5 * KB]),
    workload("medium-page", "one page of 25 kB", &[25 * KB]),
    workload("large-page", "one page of 100 kB", &[100 * KB]),
    workload("small-cluster", "Yahoo's front page of 1996: 6651 B and 2 images", &[6651, 3883, 1866]),
    workload(
        "medium-cluster",
        "GNN's front page of 1996: 3220 B and 3 images",
        &[3220, 57_613, 2344, 14_190],
    ),
    workload("large-cluster", "one page of 100 kB and 10 images of 25 kB", &LARGE_CLUSTER),
    Entry {
        listing: Listing {
            name: "w3c-page",
            description: "the W3C note's page as the model has it: 42 kB and 41 images, 125 kB together",
            source: "papers/heidemann-model#table-8, papers/w3c#microscape",
        },
        definition: PageDefinition::Sizes(&W3C_PAGE, Some(Bytes::new(11 * KB))),
    },
    Entry {
        listing: Listing {
            name: "microscape",
            description: "the W3C note's page itself: 42 kB and 42 images of 128,287 B together",
            source: "papers/w3c#microscape",
        },
        definition: PageDefinition::Generated(Site::Microscape),
    },
];

const LARGE_CLUSTER: [u64; 11] = {
    let mut sizes = [25 * KB; 11];
    sizes[0] = 100 * KB;
    sizes
};

/// 42 kB of HTML and 41 images of 125 kB together.
///
/// The images' own sizes were never published. These match the published total, smallest (70 B), largest (40 KB)
/// and the animations' 24,988 bytes. They match the size classes, too: 19 below 1 KB, 7 of 1-2 KB, 6 of 2-3 KB,
/// the rest above. Large ones are spread among small ones.
const W3C_PAGE: [u64; 42] = [
    42 * KB,
    70,
    810,
    4400,
    350,
    2230,
    140,
    1180,
    7530,
    488,
    2700,
    216,
    1560,
    40_960,
    700,
    3800,
    312,
    2110,
    118,
    1090,
    5900,
    440,
    2520,
    190,
    1420,
    12_494,
    610,
    3250,
    280,
    1880,
    96,
    930,
    5100,
    396,
    2380,
    168,
    1290,
    12_494,
    540,
    2900,
    248,
    1710,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contents::named;
    use crate::site::microscape;

    #[test]
    fn paper_the_w3c_page_is_42_kb_and_41_images_of_125_kb() {
        let page = Page::named("w3c-page").unwrap();
        assert_eq!(page.objects.len(), 42);
        assert_eq!(page.size(), Bytes::new((42 + 125) * 1024));
        assert_eq!(page.objects[0], Object::deflatable(Bytes::new(43_008), Bytes::new(11_264)));
        let images: Vec<u64> = page.objects[1..].iter().map(|object| object.size.get()).collect();
        let classes = [0..1024, 1024..2048, 2048..3072, 3072..u64::MAX]
            .map(|class| images.iter().filter(|size| class.contains(size)).count());
        assert_eq!(classes, [19, 7, 6, 9]);
        assert_eq!((images.iter().min(), images.iter().max()), (Some(&70), Some(&40_960)));
    }

    #[test]
    fn paper_microscape_is_43_objects_in_the_order_in_which_its_document_names_them() {
        let page = Page::named("microscape").unwrap();
        assert_eq!(page.size(), Bytes::new(42 * KB + 103_299 + 24_988));
        let [document, images @ ..] = &page.objects[..] else { panic!("no objects") };
        assert!(images.iter().map(|image| image.size.get()).eq(microscape::IMAGE_BYTES));
        let deflated = document.deflated.unwrap().as_f64();
        assert_eq!((document.size, (deflated / 1024.0).round()), (Bytes::new(42 * KB), 11.0));
        let contents = page.contents.unwrap();
        let existing_paths = contents.files.iter().map(|file| file.path[1..].to_owned()).collect();
        let named = named("index.html", &contents.files[0].body, &existing_paths);
        let paths = contents.files.iter().skip(1).map(|file| &file.path);
        assert!(named.files.iter().map(|(path, _)| path).eq(paths));
        assert!(named.missing.is_empty() && !named.is_cut);
    }

    #[test]
    fn every_page_is_found_by_name_and_a_misspelt_one_suggests_the_nearest() {
        assert!(Page::all().iter().all(|page| Page::named(&page.name).as_ref() == Ok(page)));
        assert_eq!(Page::named("smal-page").unwrap_err().nearest(), Some("small-page"));
        assert_eq!(Page::six().len(), 6);
    }
}
