//! Finds the card that is CUDA's device 0, on which every model runs. `nvidia-smi` numbers the cards of the machine by
//! their place on the bus. CUDA numbers those that `CUDA_VISIBLE_DEVICES` lists, in that order.

use std::process::Command;

use clap::Args;

/// The operator's settings for which cards CUDA uses. CUDA reads them from the environment itself.
#[derive(Args, Clone, Debug, Default)]
pub struct CudaArgs {
    /// The cards that CUDA may use: indexes, UUIDs (`GPU-…`, `MIG-…`), or the beginning of a UUID.
    #[arg(long, env = "CUDA_VISIBLE_DEVICES", hide = true)]
    cuda_visible_devices: Option<String>,
    /// What the indexes count: `PCI_BUS_ID` or `FASTEST_FIRST`, which is CUDA's default.
    #[arg(long, env = "CUDA_DEVICE_ORDER", hide = true)]
    cuda_device_order: Option<String>,
}

/// A card, as `nvidia-smi -L` lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Its place on the bus, from 0.
    pub index: usize,
    pub name: String,
    pub uuid: String,
    /// The UUIDs of its MIG slices.
    pub slices: Vec<String>,
}

/// CUDA's device 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstDevice {
    pub card: Card,
    /// The UUID of the MIG slice, if it is one of `card`.
    pub slice: Option<String>,
}

impl CudaArgs {
    /// Returns CUDA's device 0.
    ///
    /// # Errors
    /// Why it is not known, in a few words.
    pub fn first_device(&self) -> Result<FirstDevice, String> {
        let output = Command::new("nvidia-smi").arg("-L").output();
        let output = output.map_err(|error| format!("nvidia-smi cannot be started: {error}"))?;
        if !output.status.success() {
            return Err("nvidia-smi lists no cards".to_owned());
        }
        self.first_of(&cards_in(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Describes the setting, for messages.
    pub fn visible(&self) -> String {
        match &self.cuda_visible_devices {
            Some(visible) => format!("CUDA_VISIBLE_DEVICES={visible}"),
            None => "CUDA_VISIBLE_DEVICES is not set".to_owned(),
        }
    }

    fn first_of(&self, cards: &[Card]) -> Result<FirstDevice, String> {
        let visible = self.cuda_visible_devices.as_deref().unwrap_or("0");
        // CUDA ignores what follows the first entry that it does not know.
        let first = visible.split(',').next().unwrap_or_default().trim();
        if first.starts_with("MIG-") {
            let slices = cards.iter().flat_map(|card| card.slices.iter().map(move |id| (card, id)));
            let (card, slice) = only(slices.filter(|(_, id)| id.starts_with(first)), first)?;
            return Ok(FirstDevice { card: card.clone(), slice: Some(slice.clone()) });
        }
        let card = if first.starts_with("GPU-") {
            only(cards.iter().filter(|card| card.uuid.starts_with(first)), first)?
        } else {
            let index = first.parse().map_err(|_| format!("{first:?} names no card"))?;
            self.at(cards, index)?
        };
        // Of a card that is divided, CUDA takes the first slice.
        Ok(FirstDevice { slice: card.slices.first().cloned(), card: card.clone() })
    }

    fn at<'a>(&self, cards: &'a [Card], index: usize) -> Result<&'a Card, String> {
        let is_by_bus = self.cuda_device_order.as_deref() == Some("PCI_BUS_ID");
        // Equal cards are equally fast, so CUDA leaves them in the order of the bus.
        if !is_by_bus && cards.windows(2).any(|pair| pair[0].name != pair[1].name) {
            return Err(
                "the cards differ, and CUDA numbers the fastest one first, whichever that is; \
                        set CUDA_DEVICE_ORDER=PCI_BUS_ID, or name a card by its UUID in \
                        CUDA_VISIBLE_DEVICES"
                    .to_owned(),
            );
        }
        cards.get(index).ok_or_else(|| format!("there is no card {index}"))
    }
}

/// Returns the only match of the beginning of a UUID.
fn only<T>(mut matches: impl Iterator<Item = T>, start: &str) -> Result<T, String> {
    match (matches.next(), matches.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => Err(format!("no card or slice is {start}")),
        (Some(_), Some(_)) => Err(format!("several cards or slices begin with {start}")),
    }
}

/// Reads the list of `nvidia-smi -L`.
fn cards_in(list: &str) -> Vec<Card> {
    let mut cards: Vec<Card> = Vec::new();
    for line in list.lines() {
        let Some((what, uuid)) = line.trim().trim_end_matches(')').rsplit_once("(UUID: ") else {
            continue;
        };
        let uuid = uuid.trim().to_owned();
        if let Some((index, name)) = what.strip_prefix("GPU ").and_then(|what| what.split_once(':'))
            && let Ok(index) = index.parse()
        {
            let name = name.trim().to_owned();
            cards.push(Card { index, name, uuid, slices: Vec::new() });
        } else if let Some(card) = cards.last_mut() {
            card.slices.push(uuid);
        }
    }
    cards
}

#[cfg(test)]
mod tests {
    use super::*;

    const EQUAL: &str =
        "GPU 0: NVIDIA H200 (UUID: GPU-1a2b)\nGPU 1: NVIDIA H200 (UUID: GPU-1c3d)\n";
    const DIFFERENT: &str =
        "GPU 0: NVIDIA T400 (UUID: GPU-1a2b)\nGPU 1: NVIDIA RTX 4090 (UUID: GPU-1c3d)\n";
    const DIVIDED: &str = "GPU 0: NVIDIA A100 (UUID: GPU-1a2b)\n  \
                           MIG 1g.5gb     Device  0: (UUID: MIG-77)\n  \
                           MIG 2g.10gb    Device  1: (UUID: MIG-88)\n\
                           GPU 1: NVIDIA A100 (UUID: GPU-1c3d)\n";

    fn first(list: &str, visible: Option<&str>, order: Option<&str>) -> Result<String, String> {
        let args = CudaArgs {
            cuda_visible_devices: visible.map(ToOwned::to_owned),
            cuda_device_order: order.map(ToOwned::to_owned),
        };
        let FirstDevice { card, slice } = args.first_of(&cards_in(list))?;
        Ok(slice.unwrap_or_else(|| format!("{} {}", card.index, card.uuid)))
    }

    #[test]
    fn indexes_and_uuids_and_their_beginnings_name_a_card() {
        for (visible, expected) in [
            (None, "0 GPU-1a2b"),
            (Some("0"), "0 GPU-1a2b"),
            (Some("1"), "1 GPU-1c3d"),
            (Some("1,0"), "1 GPU-1c3d"),
            (Some("1,-1,0"), "1 GPU-1c3d"),
            (Some("GPU-1c3d"), "1 GPU-1c3d"),
            (Some("GPU-1c, GPU-1a"), "1 GPU-1c3d"),
        ] {
            assert_eq!(first(EQUAL, visible, None).as_deref(), Ok(expected), "{visible:?}");
        }
    }

    #[test]
    fn what_names_no_card_or_several_is_said() {
        for (visible, words) in [
            ("", "names no card"),
            ("-1", "names no card"),
            ("none", "names no card"),
            ("2", "there is no card 2"),
            ("GPU-1", "several cards or slices begin with GPU-1"),
            ("GPU-9", "no card or slice is GPU-9"),
            ("MIG-77", "no card or slice is MIG-77"),
        ] {
            let reason = first(EQUAL, Some(visible), None).unwrap_err();
            assert!(reason.contains(words), "{visible:?}: {reason}");
        }
        assert_eq!(first("No devices found.\n", None, None).unwrap_err(), "there is no card 0");
    }

    #[test]
    fn an_index_among_different_cards_needs_the_order_of_the_bus() {
        for visible in [None, Some("0"), Some("1")] {
            for order in [None, Some("FASTEST_FIRST")] {
                let reason = first(DIFFERENT, visible, order).unwrap_err();
                assert!(reason.contains("CUDA_DEVICE_ORDER=PCI_BUS_ID"), "{reason}");
            }
        }
        let by_bus = first(DIFFERENT, Some("1"), Some("PCI_BUS_ID"));
        assert_eq!(by_bus.as_deref(), Ok("1 GPU-1c3d"));
        assert_eq!(first(DIFFERENT, Some("GPU-1a2b"), None).as_deref(), Ok("0 GPU-1a2b"));
    }

    #[test]
    fn a_slice_is_named_by_its_uuid_or_is_the_first_of_its_card() {
        for (visible, expected) in [
            (Some("MIG-88"), "MIG-88"),
            (Some("MIG-8"), "MIG-88"),
            (Some("GPU-1a2b"), "MIG-77"),
            (None, "MIG-77"),
            (Some("GPU-1c3d"), "1 GPU-1c3d"),
        ] {
            assert_eq!(first(DIVIDED, visible, None).as_deref(), Ok(expected), "{visible:?}");
        }
    }
}
