//! Heads that are switched off add nothing, and the others what they did.

use crate::support::{SAME_TOLERANCE, assert_close, closed_form_tensor, flex};
use burn::module::Module;
use burn::tensor::Tensor;
use lookback::layers::attention::MultiHeadConfig;
use lookback::layers::attention::multi_head::SelfAttention;
use lookback::layers::position::{AttentionPositions, PositionConfig};
use lookback::layers::{Init, Mask, Pass};
use lookback::models::weights::to_vec;
use lookback::report::attention::Part;
use lookback::report::attention::ablation::{Head, heads, without};

#[derive(Module, Debug)]
struct Layer {
    attention: SelfAttention,
}

/// Two layers whose parameters have the paths of a Transformer's encoder.
#[derive(Module, Debug)]
struct Stack {
    encoder: Vec<Layer>,
}

const N_HEADS: usize = 4;

fn output(stack: &Stack, layer: usize, is_fused: bool) -> Vec<f32> {
    let input: Tensor<3> = closed_form_tensor("input", [2, 5, 16], 2.0, &flex());
    let attention = &stack.encoder[layer].attention;
    let mut pass = Pass::inference().fused(is_fused);
    to_vec(attention.forward(input, &Mask::none(), &AttentionPositions::None, &mut pass))
}

#[test]
fn the_heads_of_a_layer_add_up_to_its_output() {
    let init = Init::new(3, &flex());
    let config = MultiHeadConfig { n_key_value_heads: 2, ..MultiHeadConfig::new(16, N_HEADS) };
    let layer = || Layer { attention: SelfAttention::new(&config, &PositionConfig::None {}, &init) };
    let stack = Stack { encoder: vec![layer(), layer()] };
    let all = heads(&stack, N_HEADS);
    let expected = (1..=2).flat_map(|layer| (1..=N_HEADS).map(move |head| Head { part: Part::Encoder, layer, head }));
    assert_eq!(all, expected.collect::<Vec<_>>());
    for is_fused in [false, true] {
        for layer in 0..2 {
            let here: Vec<Head> = all.iter().copied().filter(|head| head.layer == layer + 1).collect();
            let whole = output(&stack, layer, is_fused);
            // Without any head the bias is left, the same for every position.
            let mut sum = output(&without(stack.clone(), &here, N_HEADS), layer, is_fused);
            assert_eq!(sum[..16], sum[16..32]);
            for head in &here {
                let other = output(&without(stack.clone(), &[*head], N_HEADS), layer, is_fused);
                assert_ne!(whole, other, "{head} adds nothing");
                sum.iter_mut().zip(whole.iter().zip(other)).for_each(|(sum, (whole, other))| *sum += whole - other);
            }
            assert_close(&format!("layer {layer}, fused {is_fused}"), &sum, &whole, SAME_TOLERANCE);
            // The other layer is as it was.
            assert_eq!(
                output(&without(stack.clone(), &here, N_HEADS), 1 - layer, is_fused),
                output(&stack, 1 - layer, is_fused)
            );
        }
    }
}

#[test]
fn names_of_heads_are_read_back() {
    let head = Head { part: Part::Cross, layer: 2, head: 1 };
    assert_eq!((head.to_string().as_str(), "cross.2.1".parse()), ("cross.2.1", Ok(head)));
    for wrong in ["cross.2", "cross.2.x", "middle.1.1", "cross.2.1.1", ""] {
        assert!(wrong.parse::<Head>().unwrap_err().contains("write part, layer and head as in cross.2.1"), "{wrong}");
    }
}
