//! The architectures that a language model may have there, and their `config.json`.

use crate::data::tokenizer::{EOS, PAD};
use crate::interop::hugging_face::activation_name;
use crate::interop::shipped::Shipped;
use crate::layers::norm::EPSILON;
use crate::layers::position::PositionConfig;
use crate::models::DecoderOnlyConfig;
use serde_json::{Value, json};

/// Positions that are written out, or promised, where the scheme has no end.
const N_POSITIONS: usize = 2048;
/// The architectures that there are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Architecture {
    /// Positions are added to the words (Radford 2019).
    Gpt2,
    /// Positions turn queries and keys (Black 2022), sublayers one after the other.
    GptNeoX,
    /// The same with the normalization by root mean squares, gates, and heads in groups (Touvron 2023).
    Llama,
}

impl Architecture {
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Gpt2 => "GPT2LMHeadModel",
            Self::GptNeoX => "GPTNeoXForCausalLM",
            Self::Llama => "LlamaForCausalLM",
        }
    }

    pub(super) fn config(self, shipped: &Shipped, config: &DecoderOnlyConfig, n_positions: usize) -> Value {
        let base = match config.positions {
            PositionConfig::Rotary { base } => base,
            _ => 0.0,
        };
        let own = match self {
            Self::Gpt2 => json!({
                "model_type": "gpt2",
                "n_embd": config.d_model, "n_layer": config.n_layers, "n_head": config.n_heads,
                "n_inner": config.d_feed_forward, "n_positions": n_positions,
                "activation_function": activation_name(config.activation),
                "layer_norm_epsilon": EPSILON,
                "resid_pdrop": config.dropout_rate,
                "embd_pdrop": config.embedding_dropout_rate(),
                "attn_pdrop": config.attention_dropout_rate,
            }),
            Self::GptNeoX => json!({
                "model_type": "gpt_neox",
                "hidden_size": config.d_model, "num_hidden_layers": config.n_layers,
                "num_attention_heads": config.n_heads, "intermediate_size": config.d_feed_forward,
                "max_position_embeddings": n_positions,
                "hidden_act": activation_name(config.activation),
                "layer_norm_eps": EPSILON,
                "use_parallel_residual": false, "attention_bias": true,
                // Versions before 5 read the first two, those after it the third.
                "rotary_pct": 1.0, "rotary_emb_base": base,
                "rope_parameters": { "rope_type": "default", "rope_theta": base, "partial_rotary_factor": 1.0 },
                "hidden_dropout": config.dropout_rate, "attention_dropout": config.attention_dropout_rate,
            }),
            Self::Llama => json!({
                "model_type": "llama",
                "hidden_size": config.d_model, "num_hidden_layers": config.n_layers,
                "num_attention_heads": config.n_heads, "num_key_value_heads": config.n_key_value_heads(),
                "head_dim": config.d_model / config.n_heads,
                "intermediate_size": config.d_feed_forward,
                "max_position_embeddings": n_positions,
                "hidden_act": "silu",
                "rms_norm_eps": EPSILON,
                "attention_bias": true, "mlp_bias": true,
                "rope_theta": base,
                "rope_parameters": { "rope_type": "default", "rope_theta": base },
                "attention_dropout": config.attention_dropout_rate,
            }),
        };
        let mut all = json!({
            "architectures": [self.class()],
            "vocab_size": shipped.tokenizers.target().vocab_size(),
            "tie_word_embeddings": is_tied(shipped),
            "bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD,
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut all, own) {
            all.extend(own);
        }
        all
    }
}

/// Whether words are scored by the table that they are read with.
pub(super) fn is_tied(shipped: &Shipped) -> bool {
    !shipped.weights.contains_key("output.projection.weight")
}

pub(super) fn n_positions(config: &DecoderOnlyConfig) -> usize {
    config.positions.max_len().unwrap_or(N_POSITIONS)
}
