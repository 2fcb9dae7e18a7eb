//! The whole page in the note's forms: deflate, style sheets, PNG and MNG, and all of them, fetched by the robot.
//!
//! Each form is made of real files ([`super::content`]) and fetched packet by packet: an image saves its request as well
//! as its bytes.

use std::sync::{Arc, LazyLock};

use scenario::{Protocol, Visit};
use simulate::Experiment;

use super::content::{STYLED, Styled, converted};
use super::hosts::{ClientLocation, Software};
use super::microscape::{self, RealPage};
use super::{ReproducedValue, SettingValues, run, tuned};

/// A form of the page.
struct Form {
    name: &'static str,
    is_deflated: bool,
    page: RealPage,
}

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let form = |name, [is_styled, is_converted, is_deflated]: [bool; 3]| {
        let page = page(is_styled, is_converted, is_deflated);
        Form { name, is_deflated, page }
    };
    vec![
        form("plain", [false, false, false]),
        form("deflate", [false, false, true]),
        form("css", [true, false, false]),
        form("images", [false, true, false]),
        form("all", [true, true, true]),
    ]
});

/// Real files of a form; images keep their names.
fn page(is_styled: bool, is_converted: bool, is_deflated: bool) -> RealPage {
    let Styled { content, replaced } = &*STYLED;
    let files = content.files.iter().enumerate();
    let left = files.filter(|(index, _)| !is_styled || !replaced.images.contains_key(index));
    let object = |(index, file): (usize, &content::File)| -> Arc<[u8]> {
        let rewritten = replaced.documents.get(&index).filter(|_| is_styled);
        let image = file.picture().filter(|_| is_converted).and_then(converted);
        image.as_ref().or(rewritten).unwrap_or(&file.bytes).as_slice().into()
    };
    microscape::real(left.map(object).collect(), is_deflated)
}

/// `FORM/bytes`: bytes of a first visit from Apache over the LAN, pipelined. `FORM/bandwidth`: the same with the headers of
/// TCP and IP. `FORM/seconds`: its seconds over the modem. `FORM/requests`: its objects.
///
/// # Errors
/// The name, if it is unknown, or the simulator's refusal.
pub fn quantity(name: &str) -> ReproducedValue {
    let unknown = || format!("no quantity techniques/{name}");
    let (form, quantity_name) = name.split_once('/').ok_or_else(unknown)?;
    let form = FORMS.iter().find(|known| known.name == form).ok_or_else(unknown)?;
    let fetched = |index| {
        let protocol =
            if form.is_deflated { Protocol::Http11PipelinedDeflate } else { Protocol::Http11Pipelined };
        let (scenario, hosts) = tuned(Software::Apache, index, protocol, Visit::First, &form.page);
        run(&Experiment::new(&scenario, hosts).map_err(|error| error.to_string())?)
    };
    Ok(Some(match quantity_name {
        "bytes" => fetched(ClientLocation::Lan)?.bytes,
        "bandwidth" => {
            let SettingValues { packets, bytes, .. } = fetched(ClientLocation::Lan)?;
            bytes + 40.0 * packets
        }
        "seconds" => fetched(ClientLocation::Ppp)?.seconds,
        "requests" => form.page.contents.objects.len() as f64,
        _ => return Err(unknown()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_changes_what_its_name_says() {
        let [plain, deflate, css, images, all] = &FORMS[..] else { panic!("five forms") };
        let sizes = |form: &Form| -> Vec<usize> {
            form.page.contents.objects.iter().map(|object| object.len()).collect()
        };
        assert_eq!(sizes(plain)[1..], sizes(deflate)[1..]);
        assert!(sizes(deflate)[0] < sizes(plain)[0]);
        assert_eq!(sizes(plain)[0], sizes(images)[0]);
        assert_eq!(sizes(css).len(), sizes(all).len());
        assert!(sizes(css).len() < sizes(plain).len());
        assert!(sizes(images)[1..].iter().sum::<usize>() < sizes(plain)[1..].iter().sum());
        for form in [plain, deflate, css, images, all] {
            assert_eq!(form.page.contents.named_at.len(), form.page.contents.objects.len(), "{}", form.name);
        }
    }
}
