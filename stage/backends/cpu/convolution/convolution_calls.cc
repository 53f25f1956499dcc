#include "stage/backends/cpu/convolution/convolution_calls.h"

#include <algorithm>

#include "operations/images/convolution.h"
#include "operations/images/winograd.h"
#include "stage/backends/cpu/convolution/convolution_room.h"
#include "stage/backends/cpu/primitives/convolution_rows.h"

namespace stagecoach::cpu {
namespace {

constexpr double kTaskFlops = 4e6;  // worth a task
constexpr int64_t kLeastTasks = 8;  // of a micro-batch, where its images are worth as many
// Every call reads the whole weight: with fewer places that takes longer than to multiply by it.
constexpr int64_t kPartPlaces = 32;

bool IsWinograd(const DirectConvolutions& direct) {
  return direct.packing().algorithm == ConvolutionAlgorithm::kWinograd;
}

int64_t MostCallImages(const DirectConvolutions& direct, const ConvolutionSizes& sizes,
                       int64_t samples, bool widens) {
  const double most = kMostCallFlops / std::max(1.0, sizes.flops);
  int64_t images = most < 1e9 ? static_cast<int64_t>(most) : int64_t{1000000000};
  if (IsWinograd(direct)) images = std::min(images, WinogradImages(samples, sizes.places));
  if (!widens) return std::max<int64_t>(1, images);
  return std::max<int64_t>(1, std::min(images, kMostWidened / sizes.WidenedBytes()));
}

// For several images, packed as for one, oneDNN may know general ways only, a hundred times slower.
bool FastForSeveral(DirectConvolutions& direct, int64_t samples, int64_t call) {
  return direct.Of(call).fast() && (samples % call == 0 || direct.Of(samples % call).fast());
}

std::vector<RowPart> Parts(const DirectConvolutions& direct, int64_t parts) {
  const WindowShape& w = direct.packing().shape.window;
  if (direct.packing().part != ConvolutionPart::kInputGradient) {
    return CutIntoParts(w, w.places_height, (w.places_height + parts - 1) / parts, PartOfPlaces);
  }
  const int64_t rows = (w.height + parts - 1) / parts;
  const int64_t whole = (rows + w.stride_height - 1) / w.stride_height * w.stride_height;
  return CutIntoParts(w, w.height, whole, PartOfImage);
}

}  // namespace

ConvolutionSizes::ConvolutionSizes(const ConvolutionShape& s)
    : image(s.window.height * s.window.width * s.window.channels),
      places(s.window.places_height * s.window.places_width),
      out(places * s.out),
      flops(2.0 * static_cast<double>(out * s.window.size_height * s.window.size_width *
                                      (s.window.channels / s.groups))) {}

int64_t ConvolutionSizes::WidenedBytes() const { return (image + out) * kFloatBytes; }

ConvolutionCalls ConvolutionCalls::OfOutputs(DirectConvolutions& direct,
                                             const ConvolutionSizes& sizes, int64_t samples,
                                             bool widens) {
  ConvolutionCalls calls(widens);
  if (IsWinograd(direct)) {
    calls.AddImages(direct, sizes, samples, WinogradImages(samples, sizes.places));
    return calls;
  }
  const int64_t worth = static_cast<int64_t>(std::min(sizes.flops / kTaskFlops, 1e9));
  const int64_t parts =
      std::min({(kLeastTasks + samples - 1) / samples, sizes.places / kPartPlaces, worth});
  if (calls.AddRows(direct, sizes, samples, parts)) return calls;
  const int64_t images = static_cast<int64_t>(kTaskFlops / std::max(1.0, sizes.flops));
  calls.AddImages(direct, sizes, samples, std::max<int64_t>(1, images));
  return calls;
}

ConvolutionCalls ConvolutionCalls::OfShares(DirectConvolutions& direct,
                                            const ConvolutionSizes& sizes, int64_t samples,
                                            bool widens) {
  ConvolutionCalls calls(widens);
  const int64_t parts = SharesOfSample(samples, sizes.places);
  if (calls.AddRows(direct, sizes, samples, parts)) return calls;
  calls.AddImages(direct, sizes, samples, SamplesOfShare(samples, sizes.places));
  return calls;
}

void ConvolutionCalls::AddImages(DirectConvolutions& direct, const ConvolutionSizes& sizes,
                                 int64_t samples, int64_t task) {
  int64_t call = std::min({samples, task, MostCallImages(direct, sizes, samples, widens_)});
  if (!FastForSeveral(direct, samples, call)) call = 1;
  const int64_t images = (std::min(samples, task) + call - 1) / call * call;
  const DirectConvolution& full = direct.Of(call);
  for (int64_t first = 0; first < samples; first += call) {
    const int64_t some = std::min(call, samples - first);
    Add({.one = some == call ? &full : &direct.Of(some),
         .image = first * sizes.image,
         .image_elements = some * sizes.image,
         .places = first * sizes.out,
         .places_elements = some * sizes.out},
        first % images == 0);
  }
}

bool ConvolutionCalls::AddRows(DirectConvolutions& direct, const ConvolutionSizes& sizes,
                               int64_t samples, int64_t parts) {
  if (parts < 2 || IsWinograd(direct)) return false;
  const std::vector<RowPart> rows = Parts(direct, parts);
  if (rows.size() < 2) return false;
  for (const RowPart& part : rows) {
    if (!direct.Of(part).fast()) return false;
  }
  const WindowShape& w = direct.packing().shape.window;
  const int64_t image_row = sizes.image / w.height, places_row = sizes.out / w.places_height;
  for (int64_t sample = 0; sample < samples; ++sample) {
    for (const RowPart& part : rows) {
      Add({.one = &direct.Of(part),
           .image = sample * sizes.image + part.first_image * image_row,
           .image_elements = part.image_rows * image_row,
           .places = sample * sizes.out + part.first_place * places_row,
           .places_elements = part.places_rows * places_row},
          true);
    }
  }
  return true;
}

void ConvolutionCalls::Add(const ConvolutionCall& call, bool begins_task) {
  if (begins_task) first_calls_.push_back(calls_.size());
  several_ = several_ || !begins_task;
  scratch_ = std::max(scratch_, (call.one->scratch_bytes() + kFloatBytes - 1) / kFloatBytes);
  if (widens_) {
    image_ = std::max(image_, call.image_elements);
    places_ = std::max(places_, call.places_elements);
  }
  calls_.push_back(call);
}

std::span<const ConvolutionCall> ConvolutionCalls::Task(int64_t task) const {
  const auto at = static_cast<size_t>(task);
  const size_t first = first_calls_[at];
  const size_t end = at + 1 < first_calls_.size() ? first_calls_[at + 1] : calls_.size();
  return std::span(calls_).subspan(first, end - first);
}

int64_t ConvolutionCalls::RoomBytes(int64_t sum) const {
  return (Pieces::Rounded(scratch_) + Pieces::Rounded(image_) + Pieces::Rounded(places_) +
          (several_ ? Pieces::Rounded(sum) : 0)) *
         kFloatBytes;
}

ConvolutionCalls::Room ConvolutionCalls::RoomIn(float* memory) const {
  Pieces pieces(memory);
  Room room{};
  room.scratch = pieces.Take(scratch_);
  room.image = pieces.Take(image_);
  room.places = pieces.Take(places_);
  if (several_) room.sum = pieces.Take(0);  // the last one
  return room;
}

}  // namespace stagecoach::cpu
