#include "stage/backends/cpu/direct_convolution.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/check.h"
#include "stage/backends/cpu/onednn.h"
#include "stage/backends/cpu/worker_pool.h"

namespace stagecoach::cpu {
namespace {

using dnnl::memory;
using Desc = memory::desc;
using Tag = memory::format_tag;
using Forward = dnnl::convolution_forward;
using BackwardData = dnnl::convolution_backward_data;
using BackwardWeights = dnnl::convolution_backward_weights;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// What is read behind the last pixel, so that there are so many places.
int64_t PaddingBehind(int64_t places, int64_t stride, int64_t size, int64_t dilation,
                      int64_t extent, int64_t padding) {
  return std::max<int64_t>(0, (places - 1) * stride + (size - 1) * dilation + 1 - extent - padding);
}

struct Descs {
  explicit Descs(const ConvolutionShape& s) {
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
  Desc image, places, weight, any, bias;
  memory::dims stride, dilation, before, behind;
};

dnnl::primitive_attr OwnScratch() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

Forward::primitive_desc DescribeForward(const Descs& d, const Desc& packing, bool bias) {
  constexpr auto kTraining = dnnl::prop_kind::forward_training;
  const auto desc = bias ? Forward::desc(kTraining, kDirect, d.image, packing, d.bias, d.places,
                                         d.stride, d.dilation, d.before, d.behind)
                         : Forward::desc(kTraining, kDirect, d.image, packing, d.places, d.stride,
                                         d.dilation, d.before, d.behind);
  return {desc, OwnScratch(), Engine()};
}

}  // namespace

struct DirectConvolution::State {
  Descs descs;
  dnnl::primitive primitive;
  Desc packed, scratch;
  std::string way;  // oneDNN's name of it; a copy, for its own goes with the description
  int image = 0, weight = 0, places = 0;  // arguments
  dnnl::reorder reorder;

  State(ConvolutionPart part, const ConvolutionShape& shape, bool bias, const Desc* like)
      : descs(shape) {
    const Descs& d = descs;
    const Desc packing = like == nullptr ? d.any : *like;
    const Forward::primitive_desc forward =
        DescribeForward(d, part == ConvolutionPart::kForward ? packing : d.any, bias);
    switch (part) {
      case ConvolutionPart::kForward:
        Take(forward, Forward(forward), forward.weights_desc(), DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
             DNNL_ARG_DST);
        break;
      case ConvolutionPart::kInputGradient: {
        const BackwardData::desc desc(kDirect, d.image, packing, d.places, d.stride, d.dilation,
                                      d.before, d.behind);
        const BackwardData::primitive_desc backward(desc, OwnScratch(), Engine(), forward);
        Take(backward, BackwardData(backward), backward.weights_desc(), DNNL_ARG_DIFF_SRC,
             DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST);
        break;
      }
      case ConvolutionPart::kWeightGradient: {
        const BackwardWeights::desc desc(kDirect, d.image, packing, d.places, d.stride, d.dilation,
                                         d.before, d.behind);
        const BackwardWeights::primitive_desc backward(desc, OwnScratch(), Engine(), forward);
        Take(backward, BackwardWeights(backward), backward.diff_weights_desc(), DNNL_ARG_SRC,
             DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST);
        break;
      }
    }
    dnnl::primitive_attr attributes;
    const bool unpacks = part == ConvolutionPart::kWeightGradient;
    if (unpacks) {
      dnnl::post_ops post_ops;
      post_ops.append_sum(1.0f);
      attributes.set_post_ops(post_ops);
    }
    const Desc &from = unpacks ? packed : d.weight, &to = unpacks ? d.weight : packed;
    reorder =
        dnnl::reorder(dnnl::reorder::primitive_desc(Engine(), from, Engine(), to, attributes));
  }

  template <typename Description>
  void Take(const Description& description, dnnl::primitive made, const Desc& weights,
            int image_argument, int weight_argument, int places_argument) {
    primitive = std::move(made);
    way = description.impl_info_str();
    scratch = description.scratchpad_desc();
    packed = weights;
    image = image_argument;
    weight = weight_argument;
    places = places_argument;
  }
};

DirectConvolution::DirectConvolution(ConvolutionPart part, const ConvolutionShape& shape, bool bias,
                                     const DirectConvolution* like)
    : state_(std::make_unique<State>(part, shape, bias,
                                     like == nullptr ? nullptr : &like->state_->packed)) {}
DirectConvolution::~DirectConvolution() = default;

bool DirectConvolution::fast() const {
  return state_->way.starts_with("jit") || state_->way.starts_with("brgconv");
}
int64_t DirectConvolution::scratch_bytes() const {
  return static_cast<int64_t>(state_->scratch.get_size());
}
int64_t DirectConvolution::packed_bytes() const {
  return static_cast<int64_t>(state_->packed.get_size());
}

void DirectConvolution::Pack(const float* weight, void* packed) const {
  memory source = View(state_->descs.weight, weight), target = View(state_->packed, packed);
  state_->reorder.execute(Stream(), source, target);
}
void DirectConvolution::AddUnpacked(const void* packed, float* weight) const {
  memory source = View(state_->packed, packed), target = View(state_->descs.weight, weight);
  state_->reorder.execute(Stream(), source, target);
}

void DirectConvolution::Execute(const float* image, const void* weight, const float* bias,
                                const float* places, void* scratch) const {
  std::unordered_map<int, memory> arguments = {
      {state_->image, View(state_->descs.image, image)},
      {state_->weight, View(state_->packed, weight)},
      {state_->places, View(state_->descs.places, places)}};
  if (bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, View(state_->descs.bias, bias));
  if (scratch_bytes() > 0) {
    arguments.emplace(DNNL_ARG_SCRATCHPAD, View(state_->scratch, scratch));
  }
  state_->primitive.execute(Stream(), arguments);
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
  std::unique_ptr<DirectConvolution>& entry =
      made_[{.part = packing_.part, .shape = shape, .bias = packing_.bias}];
  if (entry == nullptr) {
    const SerialOpenMp serial;  // primitives are made for one thread
    entry = std::make_unique<DirectConvolution>(packing_.part, shape, packing_.bias, first_);
    if (first_ == nullptr) first_ = entry.get();
  }
  return *entry;
}

}  // namespace stagecoach::cpu
