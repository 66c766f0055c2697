//! Bars as SVG without a script. Colours come from the style sheet.

use maud::{Markup, html};

/// Shows how full a window is: a bar that warns.
pub(crate) fn pressure_bar(share: f64, label: &str) -> Markup {
    let class = match share {
        share if share >= 0.95 => "fill over",
        share if share >= 0.8 => "fill high",
        _ => "fill",
    };
    bar(share, class, label)
}

/// Shows a share of a whole as a bar.
pub(crate) fn share_bar(share: f64, label: &str) -> Markup {
    bar(share, "fill", label)
}

fn bar(share: f64, class: &str, label: &str) -> Markup {
    let width = (share.clamp(0.0, 1.0) * 100.0 * 10.0).round() / 10.0;
    html! {
        svg.bar viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=(label) {
            rect.track width="100" height="4" rx="1" {}
            rect class=(class) width=(width) height="4" rx="1" {}
        }
    }
}

/// Shows parts of a whole side by side, each with a class.
pub(crate) fn stacked_bar(parts: &[(&str, u64)], label: &str) -> Markup {
    let all = parts.iter().map(|(_, size)| size).sum::<u64>().max(1);
    let mut start = 0.0;
    let places = parts.iter().map(|(class, size)| {
        let width = *size as f64 / all as f64 * 100.0;
        let place = (*class, start, width);
        start += width;
        place
    });
    let places: Vec<(&str, f64, f64)> = places.collect();
    html! {
        svg.bar.stacked viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=(label) {
            @for (class, x, width) in places {
                rect class=(class) x=(format!("{x:.2}")) width=(format!("{width:.2}")) height="4" {}
            }
        }
    }
}
