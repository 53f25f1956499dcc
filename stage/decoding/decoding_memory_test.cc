// The forecast of keys, values and held sources (plan/costs/decoding_memory.h) against what a stage's
// allocator counts.
#include "plan/costs/decoding_memory.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "network/zoo/gpt.h"
#include "network/zoo/llama.h"
#include "network/zoo/transformer.h"
#include "plan/plan.h"
#include "stage/backends/backend.h"
#include "stage/decoding/cell_decoder.h"
#include "stage/layers/layer_testing.h"

namespace stagecoach {
namespace {

constexpr int64_t kDecoderLayers = 3, kTextRows = 40, kSourceRows = 24, kIds = 50, kBatch = 16;
constexpr int64_t kLengthBytes = kBatch * sizeof(int32_t);  // of the sources

// Rows of keys and values have whole 64 bytes, to which the allocator rounds up.
struct MemoryCase {
  std::string name;
  NetworkSpec network;
  WriteSpec write;
  int64_t key_width = 0;     // numbers of a row's keys in one attention
  int64_t source_width = 0;  // of a source's keys in one attention; 0: there is no source
  friend void PrintTo(const MemoryCase& of, std::ostream* out) { *out << of.name; }
};

std::vector<MemoryCase> MemoryCases() {
  const WriteSpec generate{.lines = {"Once", "It was a day", "A", "The end of it", "More"},
                           .generate = GenerateSpec{.tokens = 9}};
  const WriteSpec translate{.lines = {"a b"}, .translate = TranslateSpec{.beam = 3, .tokens = 7}};
  const TransformerSpec transformer{.vocabulary = kIds,
                                    .source_context = kSourceRows,
                                    .target_context = kTextRows,
                                    .width = 64,
                                    .hidden = 96,
                                    .heads = 2,
                                    .encoder_layers = 2,
                                    .decoder_layers = kDecoderLayers};
  const LlamaSpec grouped{.layers = kDecoderLayers,
                          .width = 64,
                          .heads = 8,
                          .key_heads = 2,
                          .head_width = 16,
                          .hidden = 96,
                          .context = kTextRows,
                          .vocabulary = kIds};
  LlamaSpec whole = grouped;
  whole.key_heads = 0;  // as many as heads
  return {{"gpt", GptSpec{kDecoderLayers, 64, 2, kTextRows, kIds}, generate, 64},
          {"llama", whole, generate, 8 * 16},
          {"llama_grouped", grouped, generate, 2 * 16},
          {"transformer", transformer, translate, 64, 64}};
}

int64_t CurrentOf(Backend& backend, MemoryKind kind) {
  return backend.allocator().Use().current[static_cast<size_t>(kind)];
}

bool HoldsSource(const DecodingForm& form, int layer) {
  return std::any_of(form.held.begin(), form.held.end(),
                     [layer](const DecodingForm::Held& held) { return held.layer == layer; });
}

// A stage of its own memory, with the cell of a partition.
struct Stage {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Cell> cell;
  std::unique_ptr<CellDecoder> decoder;
  int64_t pools = 0;  // bytes that the decoder took
};

class DecodingMemoryTest : public testing::TestWithParam<MemoryCase> {
 protected:
  static JobSpec Job() {
    JobSpec spec;
    spec.training.batch_size = kBatch;
    spec.training.micro_batches = 1;
    spec.write = GetParam().write;
    return spec;
  }

  static Stage MakeStage(const Network& network, const DecodingForm& form, int first, int last) {
    Stage stage{.backend = MakeReferenceBackend({})};
    stage.backend->SetPrecision(network.precision);
    stage.cell = Cell::Create(network, first, last, /*seed=*/1, /*micro_batches=*/1, *stage.backend,
                              nullptr, Cell::Head::kWhole)
                     .value();
    const int64_t before = stage.backend->allocator().Use().total_current;
    stage.decoder = CellDecoder::Create(form, *stage.cell, *stage.backend).value();
    stage.pools = stage.backend->allocator().Use().total_current - before;
    return stage;
  }

  // Bytes that each stage keeps of a mini-batch of sources.
  static std::vector<int64_t> HeldOf(const DecodingForm& form, std::vector<Stage>& stages) {
    std::vector<int64_t> held;
    Binding binding{kBatch};
    binding.lengths.Set(Length::kSource, kSourceRows);
    const std::vector<int32_t> lengths(kBatch, kSourceRows);
    const std::vector<int32_t> ids = TokenValues(kBatch * kSourceRows, 2, kIds);
    std::vector<std::vector<std::byte>> passed;
    std::vector<std::pair<DType, Shape>> types;
    for (Stage& stage : stages) {
      Backend& backend = *stage.backend;
      const int64_t before = CurrentOf(backend, MemoryKind::kActivations);
      Tensors inputs;
      for (const WireId id : stage.decoder->source_wires().loaded) {
        const bool source = form.source.input(id).name == "source";
        const std::vector<int32_t>& values = source ? ids : lengths;
        inputs.push_back(TensorOf(backend, values, DType::kI32, {std::ssize(values)}));
      }
      for (size_t i = 0; i < passed.size(); ++i) {
        Tensor tensor = MakeTensor(backend.allocator(), MemoryKind::kActivations, types[i].first,
                                   types[i].second)
                            .value();
        backend.CopyFromHost(passed[i], tensor);
        inputs.push_back(std::move(tensor));
      }
      passed.clear();
      types.clear();
      {
        const Tensors sent = stage.decoder->Begin(0, std::move(inputs), binding).value();
        for (const Tensor& tensor : sent) {
          backend.CopyToHost(tensor, passed.emplace_back(static_cast<size_t>(tensor.bytes())));
          types.emplace_back(tensor.dtype(), tensor.shape());
        }
        EXPECT_TRUE(backend.Synchronize().ok());
      }
      held.push_back(CurrentOf(backend, MemoryKind::kActivations) - before);
    }
    return held;
  }
};

TEST_P(DecodingMemoryTest, OfEveryStageIsWhatItsAllocatorCounts) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBfloat16}) {
    const Network network = ExpandNetwork(GetParam().network, precision).value();
    const int layers = static_cast<int>(network.layers.size());
    const JobSpec job = Job();
    const int64_t rows = PoolRowsOf(job, network);
    const DecodingForm form = DecodingOf(network, rows).value();
    const DecodingSizes forecast = *DecodingSizesOf(job, network);
    for (int count = 1; count <= 3; ++count) {
      SCOPED_TRACE(absl::StrCat(PrecisionName(precision), ", ", count, " stages"));
      const Partition partition = UniformPartition(layers, count).value();
      std::vector<Stage> stages;
      for (int k = 0; k < count; ++k) {
        stages.push_back(MakeStage(network, form, partition.first(k), partition.last(k, layers)));
      }
      std::vector<int64_t> held(stages.size());
      if (form.has_source()) held = HeldOf(form, stages);
      int64_t all = 0;
      for (int k = 0; k < count; ++k) {
        int64_t expected = 0, readers = 0;
        for (int i = partition.first(k); i < partition.last(k, layers); ++i) {
          expected += forecast.layers[static_cast<size_t>(i)];
          readers += HoldsSource(form, i) ? 1 : 0;
        }
        const auto at = static_cast<size_t>(k);
        // The forecast has the sources' lengths for each layer; those of a stage share them.
        const int64_t shared = std::max<int64_t>(0, readers - 1) * kLengthBytes;
        EXPECT_EQ(stages[at].pools + held[at], expected - shared) << "stage " << k;
        all += expected;
      }
      // What docs/architecture/decoding.md says a row takes.
      const int64_t number = precision == Precision::kBfloat16 ? 2 : 4;
      const int64_t keys = rows * 2 * GetParam().key_width * number,
                    source = kBatch * kSourceRows * 2 * GetParam().source_width * number;
      EXPECT_EQ(all, kDecoderLayers * (keys + source + (form.has_source() ? kLengthBytes : 0)));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Of, DecodingMemoryTest, testing::ValuesIn(MemoryCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace stagecoach
