#include "stage/backends/cpu/primitives/direct_convolution.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/errors/check.h"
#include "stage/backends/cpu/primitives/onednn.h"
#include "stage/backends/cpu/primitives/worker_pool.h"

namespace stagecoach::cpu {
namespace {

using dnnl::memory;
using Desc = memory::desc;
using Tag = memory::format_tag;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;

dnnl::algorithm AlgorithmOf(ConvolutionAlgorithm algorithm) {
  return algorithm == ConvolutionAlgorithm::kWinograd ? dnnl::algorithm::convolution_winograd
                                                      : dnnl::algorithm::convolution_direct;
}

// What is read behind the last pixel, so that there are so many places.
int64_t PaddingBehind(int64_t places, int64_t stride, int64_t size, int64_t dilation,
                      int64_t extent, int64_t padding) {
  return std::max<int64_t>(0, (places - 1) * stride + (size - 1) * dilation + 1 - extent - padding);
}

// image, places, weight: as they are here; the asked ones: as the primitive is to have them, in an
// order of its own where own_order.
struct Descs {
  Descs(const ConvolutionShape& s, bool own_order) {
    const WindowShape& w = s.window;
    const int64_t in = w.channels / s.groups, out = s.out / s.groups;
    const int64_t row = w.size_height * w.size_width * in;
    image = Desc({w.samples, w.channels, w.height, w.width}, kF32, Tag::nhwc);
    places = Desc({w.samples, s.out, w.places_height, w.places_width}, kF32, Tag::nhwc);
    memory::dims dims = {out, in, w.size_height, w.size_width};
    memory::dims strides = {row, 1, w.size_width * in, in};
    if (s.groups > 1) {
      dims.insert(dims.begin(), s.groups);
      strides.insert(strides.begin(), out * row);
    }
    asked_image = own_order ? Desc(image.dims(), kF32, Tag::any) : image;
    asked_places = own_order ? Desc(places.dims(), kF32, Tag::any) : places;
    weight = Desc(dims, kF32, strides);
    any = Desc(dims, kF32, Tag::any);
    bias = Desc({s.out}, kF32, Tag::x);
    stride = {w.stride_height, w.stride_width};
    dilation = {w.dilation_height - 1, w.dilation_width - 1};
    before = {w.padding_height, w.padding_width};
    behind = {PaddingBehind(w.places_height, w.stride_height, w.size_height, w.dilation_height,
                            w.height, w.padding_height),
              PaddingBehind(w.places_width, w.stride_width, w.size_width, w.dilation_width, w.width,
                            w.padding_width)};
  }
  Desc image, places, asked_image, asked_places, weight, any, bias;
  memory::dims stride, dilation, before, behind;
};

dnnl::primitive_attr OwnScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

constexpr bool kAllowEmpty = true;  // instead of an exception

Forward::primitive_desc DescribeForward(const Descs& d, dnnl::algorithm algorithm,
                                        const Desc& packing, bool bias) {
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
  const auto desc = bias ? Forward::desc(kTraining, algorithm, d.asked_image, packing, d.bias,
                                         d.asked_places, d.stride, d.dilation, d.before, d.behind)
                         : Forward::desc(kTraining, algorithm, d.asked_image, packing,
                                         d.asked_places, d.stride, d.dilation, d.before, d.behind);
  return {desc, OwnScratch(), Engine(), kAllowEmpty};
}

// With strides oneDNN 2.6.3's jit_1x1 first copies the pixels that are read into its scratch. In a
// weight's gradient it counts the copy's rows in whole vectors of channels but reserves the
// channels that come in: with fewer than a vector it writes behind its scratch, unless the caches
// of this processor let it take the places at once.
bool WritesBehindItsScratch(std::string_view way, const ConvolutionShape& s) {
  if (!way.starts_with("jit_1x1")) return false;
  const int64_t vector = way.find("avx512") == way.npos ? 8 : 16;
  return (s.window.stride_height > 1 || s.window.stride_width > 1) && s.window.channels < vector;
}

// An operand in the order that the primitive wants, in a piece of its scratch; `at` none where that
// is its order anyhow.
struct Reordered {
  static constexpr size_t kNowhere = ~size_t{0};
  Desc desc;
  size_t at = kNowhere;  // bytes
  dnnl::reorder reorder;
  bool needed() const { return at != kNowhere; }
};

size_t OnALine(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

struct DirectConvolution::State {
  const ConvolutionPart part;
  Descs descs;
  dnnl::primitive primitive;  // empty where there is no way
  Desc packed, scratch;
  std::string way;  // oneDNN's name of it; a copy, for its own goes with the description
  int image_argument = 0, weight_argument = 0, places_argument = 0;
  Reordered image, places;
  size_t scratch_bytes = 0, own_scratch_at = 0;
  dnnl::reorder reorder;  // of the weight

  State(const ConvolutionPacking& packing, const Desc* like)
      : part(packing.part),
        descs(packing.shape, packing.algorithm == ConvolutionAlgorithm::kWinograd) {
    const dnnl::algorithm algorithm = AlgorithmOf(packing.algorithm);
    const Desc weight = like == nullptr ? descs.any : *like;
    const Forward::primitive_desc forward = DescribeForward(
        descs, algorithm, part == ConvolutionPart::kForward ? weight : descs.any, packing.bias);
    if (!forward || !Make(algorithm, forward, weight, packing.shape)) return;
    MakeReorder();
    Place(image, descs.image, part != ConvolutionPart::kInputGradient);
    Place(places, descs.places, part != ConvolutionPart::kForward);
    own_scratch_at = scratch_bytes;  // last, so that a guard page behind all of it is behind this
    scratch_bytes += scratch.get_size();
  }

  bool Make(dnnl::algorithm algorithm, const Forward::primitive_desc& forward, const Desc& weight,
            const ConvolutionShape& shape) {
    const Descs& d = descs;
    switch (part) {
      case ConvolutionPart::kForward:
        Take(forward, Forward(forward), forward.src_desc(), forward.weights_desc(),
             forward.dst_desc(), DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST);
        return true;
      case ConvolutionPart::kInputGradient: {
        const BackwardData::desc desc(algorithm, d.asked_image, weight, d.asked_places, d.stride,
                                      d.dilation, d.before, d.behind);
        const BackwardData::primitive_desc made(desc, OwnScratch(), Engine(), forward, kAllowEmpty);
        if (!made) return false;
        Take(made, BackwardData(made), made.diff_src_desc(), made.weights_desc(),
             made.diff_dst_desc(), DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST);
        return true;
      }
      case ConvolutionPart::kWeightGradient: {
        const BackwardWeights::desc desc(algorithm, d.asked_image, weight, d.asked_places, d.stride,
                                         d.dilation, d.before, d.behind);
        BackwardWeights::primitive_desc made(desc, OwnScratch(), Engine(), forward, kAllowEmpty);
        if (!made) return false;
        while (WritesBehindItsScratch(made.impl_info_str(), shape)) {
          if (!made.next_impl()) return false;
        }
        Take(made, BackwardWeights(made), made.src_desc(), made.diff_weights_desc(),
             made.diff_dst_desc(), DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST);
        return true;
      }
    }
    return false;
  }

  template <typename Description>
  void Take(const Description& description, dnnl::primitive made, const Desc& image_desc,
            const Desc& weight_desc, const Desc& places_desc, int image_as, int weight_as,
            int places_as) {
    primitive = std::move(made);
    way = description.impl_info_str();
    scratch = description.scratchpad_desc();
    packed = weight_desc;
    image.desc = image_desc;
    places.desc = places_desc;
    image_argument = image_as;
    weight_argument = weight_as;
    places_argument = places_as;
  }

  void MakeReorder() {
    dnnl::primitive_attr attributes;
    const bool unpacks = part == ConvolutionPart::kWeightGradient;
    if (unpacks) {
      dnnl::post_ops post_ops;
      post_ops.append_sum(1.0f);
      attributes.set_post_ops(post_ops);
    }
    const Desc &from = unpacks ? packed : descs.weight, &to = unpacks ? descs.weight : packed;
    reorder =
        dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to, attributes));
  }

  void Place(Reordered& operand, const Desc& here, bool read) {
    if (operand.desc == here) return;
    operand.at = scratch_bytes;
    scratch_bytes += OnALine(operand.desc.get_size());
    const Desc &from = read ? here : operand.desc, &to = read ? operand.desc : here;
    operand.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to));
  }

  // The operand as the primitive takes it: itself, or a piece of scratch, which holds it if it is
  // read.
  memory Enter(const Reordered& operand, const memory& here, bool read, std::byte* room) const {
    if (!operand.needed()) return here;
    memory there = View(operand.desc, room + operand.at);
    if (read) Run(operand.reorder, here, there);
    return there;
  }
  void Leave(const Reordered& operand, const memory& there, const memory& here, bool read) const {
    if (operand.needed() && !read) Run(operand.reorder, there, here);
  }
  static void Run(dnnl::reorder reorder, memory from, memory to) {
    reorder.execute(Stream(), from, to);
  }
};

DirectConvolution::DirectConvolution(const ConvolutionPacking& packing,
                                     const DirectConvolution* like)
    : state_(std::make_unique<State>(packing, like == nullptr ? nullptr : &like->state_->packed)) {}
DirectConvolution::~DirectConvolution() = default;

bool DirectConvolution::fast() const {
  return state_->way.starts_with("jit") || state_->way.starts_with("brgconv");
}
int64_t DirectConvolution::scratch_bytes() const {
  return static_cast<int64_t>(state_->scratch_bytes);
}
int64_t DirectConvolution::packed_bytes() const {
  return static_cast<int64_t>(state_->packed.get_size());
}

void DirectConvolution::Pack(const float* weight, void* packed) const {
  State::Run(state_->reorder, View(state_->descs.weight, weight), View(state_->packed, packed));
}
void DirectConvolution::AddUnpacked(const void* packed, float* weight) const {
  State::Run(state_->reorder, View(state_->packed, packed), View(state_->descs.weight, weight));
}

void DirectConvolution::Execute(const float* image, const void* weight, const float* bias,
                                const float* places, void* scratch) const {
  const State& s = *state_;
  auto* const room = static_cast<std::byte*>(scratch);
  const bool reads_image = s.part != ConvolutionPart::kInputGradient;
  const bool reads_places = s.part != ConvolutionPart::kForward;
  const memory image_here = View(s.descs.image, image), places_here = View(s.descs.places, places);
  const memory image_there = s.Enter(s.image, image_here, reads_image, room);
  const memory places_there = s.Enter(s.places, places_here, reads_places, room);
  std::unordered_map<int, memory> arguments = {{s.image_argument, image_there},
                                               {s.weight_argument, View(s.packed, weight)},
                                               {s.places_argument, places_there}};
  if (bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, View(s.descs.bias, bias));
  if (s.scratch.get_size() > 0)
    arguments.emplace(DNNL_ARG_SCRATCHPAD, View(s.scratch, room + s.own_scratch_at));
  s.primitive.execute(Stream(), arguments);
  s.Leave(s.image, image_there, image_here, reads_image);
  s.Leave(s.places, places_there, places_here, reads_places);
}

const DirectConvolution& DirectConvolutions::Of(int64_t samples) {
  ConvolutionShape shape = packing_.shape;
  shape.window.samples = samples;
  return Of(shape);
}

const DirectConvolution& DirectConvolutions::Of(const RowPart& part) {
  return Of(ShapeOfPart(packing_.shape, part));
}

const DirectConvolution& DirectConvolutions::Of(const ConvolutionShape& shape) {
  ConvolutionPacking key = packing_;
  key.shape = shape;
  std::unique_ptr<DirectConvolution>& entry = made_[key];
  if (entry == nullptr) {
    const SerialOpenMp serial;  // primitives are made for one thread
    entry = std::make_unique<DirectConvolution>(key, first_);
    if (first_ == nullptr) first_ = entry.get();
  }
  return *entry;
}

}  // namespace stagecoach::cpu
