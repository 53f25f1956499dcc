// Rows that are computed one after the other with a pool of keys and values, against an evaluation of
// whole texts.
#include "stage/decoding/cell_decoder.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decoding/row_pool.h"
#include "decoding/token_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "network/layers/attention.h"
#include "network/layers/embedding.h"
#include "network/layers/linear.h"
#include "network/layers/norms.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/sequence.h"
#include "network/zoo/transformer.h"
#include "stage/backends/backend.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

constexpr int64_t kContext = 9, kSource = 7, kVocabulary = 23, kSamples = 3, kPool = 64;
constexpr uint64_t kSeed = 31;

struct Named {
  std::string name;
  NetworkSpec network;
  friend void PrintTo(const Named& named, std::ostream* out) { *out << named.name; }
};

TransformerSpec SmallTransformer() {
  return {.vocabulary = kVocabulary,
          .source_context = kSource,
          .target_context = kContext,
          .width = 12,
          .hidden = 20,
          .heads = 3,
          .encoder_layers = 2,
          .decoder_layers = 2,
          .dropout = 0.3};
}

std::vector<Named> Networks() {
  TransformerSpec post = SmallTransformer(), clipped = SmallTransformer();
  post.norm = TransformerNorm::kPost;
  post.positions = TransformerPositions::kLearned;
  post.tie = TransformerTie::kNone;
  post.head_width = 5;
  clipped.logit_clip = 1.5;
  clipped.bias = false;
  return {{"gpt", GptSpec{2, 12, 3, kContext, kVocabulary, 0.2}},
          {"llama", LlamaSpec{.layers = 2,
                              .width = 12,
                              .heads = 4,
                              .key_heads = 2,
                              .head_width = 6,
                              .hidden = 20,
                              .context = kContext,
                              .vocabulary = kVocabulary,
                              .qk_norm = true,
                              .tied_embeddings = true}},
          {"llama_scaled", LlamaSpec{.layers = 2,
                                     .width = 24,
                                     .heads = 2,
                                     .hidden = 20,
                                     .context = kContext,
                                     .vocabulary = kVocabulary,
                                     .rotary_theta = 100,
                                     .qkv_bias = true,
                                     .scaling = {.form = RotaryScalingForm::kLlama3,
                                                 .factor = 4,
                                                 .low_frequency_factor = 0.5,
                                                 .high_frequency_factor = 2,
                                                 .original_context = 8}}},
          {"sequence", SequenceSpec{.width = 12,
                                    .context = kContext,
                                    .vocabulary = kVocabulary,
                                    .layers = {EmbeddingSpec{}, BatchNormSpec{},
                                               AttentionSpec{.heads = 2, .rotary_theta = 100},
                                               LinearSpec{.out = kVocabulary}}}},
          {"transformer", SmallTransformer()},
          {"transformer_post_norm", post},
          {"transformer_clipped", clipped}};
}

class CellDecoderTest : public testing::TestWithParam<Named> {
 protected:
  CellDecoderTest()
      : network_(ExpandOrDie(GetParam().network)), form_(DecodingOf(network_, kPool).value()) {
    tokens_ = TokenValues(kSamples * kContext, 1, kVocabulary);
    source_ = TokenValues(kSamples * kSource, 2, kVocabulary);
  }

  std::unique_ptr<Cell> MakeCell(int first, int last) {
    return Cell::Create(network_, first, last, kSeed, /*micro_batches=*/1, *backend_, nullptr,
                        Cell::Head::kWhole)
        .value();
  }
  std::unique_ptr<Cell> WholeCell() { return MakeCell(0, layers()); }
  int layers() const { return static_cast<int>(network_.layers.size()); }

  // Logits [samples * context, vocabulary] of all texts at once.
  std::vector<float> Evaluated() {
    const std::unique_ptr<Cell> cell = WholeCell();
    Tensors inputs;
    for (const WireId id : cell->wires().loaded) {
      const std::string& name = network_.input(id).name;
      const std::vector<int32_t>& ids = name == "tokens"   ? tokens_
                                        : name == "source" ? source_
                                                           : lengths_;
      inputs.push_back(TensorOf(*backend_, ids, DType::kI32, {std::ssize(ids)}));
    }
    ForwardContext context{.micro_batch = MicroBatchId(0), .sequences = kSamples};
    context.training = false;
    return ValuesOf<float>(*backend_, cell->Evaluate(inputs, context).value().front());
  }

  SourceBatch Source() const {
    SourceBatch batch{.samples = kSamples};
    batch.lengths.Set(Length::kSource, kSource);
    batch.ids = {{"source", source_}, {"source_length", lengths_}};
    return batch;
  }

  int32_t TokenAt(int64_t sample, int64_t position) const {
    return tokens_[static_cast<size_t>(sample * kContext + position)];
  }

  const std::unique_ptr<Backend> backend_ = MakeReferenceBackend({});
  const Network network_;
  const DecodingForm form_;
  std::vector<int32_t> tokens_, source_, lengths_ = {kSource, 4, 1};
};

// A number of cells one behind the other, with texts in a pool.
class Chain {
 public:
  Chain(const DecodingForm& form, std::vector<std::unique_ptr<Cell>> cells, Backend& backend)
      : form_(form), cells_(std::move(cells)), backend_(backend) {
    for (const auto& cell : cells_) {
      decoders_.push_back(CellDecoder::Create(form, *cell, backend).value());
    }
  }

  void Begin(const SourceBatch& source) {
    if (!form_.has_source()) return;
    Tensors passed;
    const Binding binding{source.samples, source.lengths};
    for (const auto& decoder : decoders_) {
      Tensors inputs;
      for (const WireId id : decoder->source_wires().loaded) {
        const std::vector<int32_t>& ids = source.ids.at(form_.source.input(id).name);
        inputs.push_back(TensorOf(backend_, ids, DType::kI32, {std::ssize(ids)}));
      }
      inputs.insert(inputs.end(), passed.begin(), passed.end());
      passed = decoder->Begin(0, std::move(inputs), binding).value();
    }
  }

  // Logits of the rows.
  std::vector<float> Step(const RowBatch& rows) {
    Binding binding{rows.samples};
    binding.lengths.Set(Length::kTarget, rows.rows);
    const std::vector<const std::vector<int32_t>*> own = {&rows.tokens, &rows.positions,
                                                          &rows.places, &rows.history};
    Tensors passed;
    for (const auto& decoder : decoders_) {
      Tensors inputs;
      for (const WireId id : decoder->target_wires().loaded) {
        const std::vector<int32_t>& ids = *own[static_cast<size_t>(id.value)];
        inputs.push_back(TensorOf(backend_, ids, DType::kI32,
                                  RuntimeShape(form_.target.wire(id).type, binding)));
      }
      inputs.insert(inputs.end(), passed.begin(), passed.end());
      passed = decoder->Step(0, std::move(inputs), binding).value();
    }
    return ValuesOf<float>(backend_, passed.front());
  }

  void Keep(const std::vector<int64_t>& samples) {
    for (const auto& decoder : decoders_) EXPECT_TRUE(decoder->Keep(0, samples).ok());
  }

 private:
  const DecodingForm& form_;
  const std::vector<std::unique_ptr<Cell>> cells_;
  Backend& backend_;
  std::vector<std::unique_ptr<CellDecoder>> decoders_;
};

// Texts that grow, sample by sample.
class Texts {
 public:
  explicit Texts(int64_t samples) : ids_(static_cast<size_t>(samples)) {}

  // `rows` more rows of each of these samples.
  template <typename TokenAt>
  RowBatch More(const std::vector<int64_t>& samples, int64_t rows, TokenAt token_at) {
    RowBatch batch{.samples = std::ssize(samples), .rows = rows, .context = kContext};
    for (const int64_t sample : samples) {
      std::optional<HypothesisId>& id = ids_[static_cast<size_t>(sample)];
      for (int64_t i = 0; i < rows; ++i) {
        const HypothesisId next = pool_.Extend(id).value();
        if (id.has_value()) pool_.Release(*id);
        id = next;
        const auto position = std::ssize(pool_.rows(next)) - 1;
        batch.Add(token_at(sample, position), pool_.rows(next), true);
      }
    }
    return batch;
  }

 private:
  RowPool pool_{static_cast<int32_t>(kPool)};
  std::vector<std::optional<HypothesisId>> ids_;
};

// Row `position` of each sample, out of logits for `each` rows a sample.
std::vector<float> RowOf(const std::vector<float>& logits, int64_t each, int64_t sample,
                         int64_t position) {
  const auto begin = logits.begin() + (sample * each + position) * kVocabulary;
  return {begin, begin + kVocabulary};
}

TEST_P(CellDecoderTest, RowsAreThoseOfWholeTexts) {
  const std::vector<float> expected = Evaluated();
  std::vector<std::unique_ptr<Cell>> cells;
  cells.push_back(WholeCell());
  Chain chain(form_, std::move(cells), *backend_);
  chain.Begin(Source());
  Texts texts(kSamples);
  const auto token = [this](int64_t sample, int64_t at) { return TokenAt(sample, at); };
  for (int64_t position = 0; position < kContext; ++position) {
    const std::vector<float> logits = chain.Step(texts.More({0, 1, 2}, 1, token));
    for (int64_t sample = 0; sample < kSamples; ++sample) {
      EXPECT_THAT(RowOf(logits, 1, sample, 0),
                  testing::Pointwise(testing::FloatNear(2e-5f),
                                     RowOf(expected, kContext, sample, position)))
          << "sample " << sample << ", position " << position;
    }
  }
}

// A prompt is read in pieces; a stage may be cut anywhere; samples may leave. All that changes no bit.
TEST_P(CellDecoderTest, PiecesCutsAndNeighboursChangeNoBit) {
  const auto token = [this](int64_t sample, int64_t at) { return TokenAt(sample, at); };
  std::vector<std::vector<float>> one_by_one;
  {
    std::vector<std::unique_ptr<Cell>> cells;
    cells.push_back(WholeCell());
    Chain chain(form_, std::move(cells), *backend_);
    chain.Begin(Source());
    Texts texts(kSamples);
    for (int i = 0; i < kContext; ++i) {
      one_by_one.push_back(chain.Step(texts.More({0, 1, 2}, 1, token)));
    }
  }
  for (int cut = 1; cut < layers(); ++cut) {
    std::vector<std::unique_ptr<Cell>> cells;
    cells.push_back(MakeCell(0, cut));
    cells.push_back(MakeCell(cut, layers()));
    Chain chain(form_, std::move(cells), *backend_);
    chain.Begin(Source());
    Texts texts(kSamples);
    const std::vector<float> piece = chain.Step(texts.More({0, 1, 2}, 4, token));
    chain.Keep({2, 0});
    const std::vector<float> rest = chain.Step(texts.More({2, 0}, kContext - 4, token));
    for (int64_t position = 0; position < kContext; ++position) {
      const std::vector<float>& whole = one_by_one[static_cast<size_t>(position)];
      for (const int64_t sample : {0, 2}) {
        const std::vector<float> row =
            position < 4 ? RowOf(piece, 4, sample, position)
                         : RowOf(rest, kContext - 4, sample == 2 ? 0 : 1, position - 4);
        EXPECT_TRUE(SameBits(row, RowOf(whole, 1, sample, 0)))
            << "cut " << cut << ", sample " << sample << ", position " << position;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, CellDecoderTest, testing::ValuesIn(Networks()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stagecoach
