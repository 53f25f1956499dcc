// One end of a boundary and a peer that sends anything, in any order with what we do ourselves:
// hello, credits, repeats, chunks.
//
// The input is a list of actions. A chunk as it comes fails by its checksum; those that are made
// here have a right one, so that what is behind the checksum is reached too.
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/files/hash.h"
#include "stage/link/grpc/link_core.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "tests/fuzz/fuzz_target.h"

namespace stagecoach {
namespace {

constexpr int64_t kMemory = 1 << 20;
constexpr int kCapacity = 4;

class OpenStream final : public LinkStream {
 public:
  explicit OpenStream(bool client) : client_(client) {}
  void Write(const grpc::ByteBuffer*) override {
    CHECK(!writing) << "one write at a time";
    CHECK(!ended) << "nothing behind the end";
    writing = true;
  }
  void End(const absl::Status&) override {
    CHECK(!ended && !writing) << "one end, behind the last write";
    ended = true;
  }
  void Cancel() override {}
  bool is_client() const override { return client_; }

  bool writing = false, ended = false;

 private:
  const bool client_;
};

std::span<const std::byte> ByteSpan(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// The same in one piece and in several: where gRPC cuts is nobody's choice.
void CheckDecoding(const std::string& bytes, size_t cut) {
  const std::span<const std::byte> whole = ByteSpan(bytes);
  cut = bytes.empty() ? 0 : cut % bytes.size();
  const std::vector<std::span<const std::byte>> one = {whole};
  const std::vector<std::span<const std::byte>> several = {
      whole.first(cut),
      {},
      whole.subspan(cut, (whole.size() - cut) / 2),
      whole.subspan(cut + (whole.size() - cut) / 2)};
  const absl::StatusOr<LinkMessage> message = DecodeLinkMessage(one);
  const absl::StatusOr<LinkMessage> again = DecodeLinkMessage(several);
  CHECK(message.status() == again.status()) << message.status() << " " << again.status();
  if (!message.ok()) return;
  CHECK(*message == *again) << "in one piece and in several";
  std::string written;
  if (const auto* hello = std::get_if<LinkHello>(&*message)) written = EncodeHello(*hello);
  if (const auto* credit = std::get_if<LinkCredit>(&*message)) written = EncodeCredit(*credit);
  if (const auto* repeat = std::get_if<LinkRepeat>(&*message)) written = EncodeRepeat(*repeat);
  if (const auto* frame = std::get_if<LinkFrame>(&*message)) {
    written = EncodeFrameHead(*frame);
    std::string payload(frame->data_bytes, '\0');
    CopyPieces(one, frame->data_position,
               std::as_writable_bytes(std::span(payload.data(), payload.size())));
    written += payload;
  }
  const std::vector<std::span<const std::byte>> anew = {ByteSpan(written)};
  absl::StatusOr<LinkMessage> read = DecodeLinkMessage(anew);
  CHECK(read.ok()) << read.status();
  if (auto* frame = std::get_if<LinkFrame>(&*read)) {
    frame->data_position = std::get<LinkFrame>(*message).data_position;
  }
  CHECK(*read == *message) << "what was written of it";
}

// Small numbers: those of a link that works, or next to them.
std::string MakeChunk(FuzzInput& input, size_t* payload_bytes) {
  LinkFrame frame;
  const uint8_t which = input.Byte();
  frame.term = (which & 1) != 0 ? input.Byte() % 4 : 1;
  frame.generation = (which & 2) != 0 ? input.Byte() % 4 : 2;
  frame.step = (which & 4) != 0 ? input.Byte() : 7;
  frame.attempt = (which & 8) != 0 ? input.Byte() : 1;
  frame.kind = static_cast<MessageKind>(1 + (which >> 6));
  frame.micro_batch = input.Byte();
  const uint8_t place = input.Byte();
  frame.tensor_index = place % 8;
  frame.tensor_count = 1 + place / 8 % 8;
  frame.dtype = static_cast<DType>(1 + input.Byte() % 6);
  for (int rank = input.Byte() % 4; rank > 0; --rank) frame.shape.push_back(input.Byte() % 40);
  frame.offset = input.Byte();
  const std::string payload = input.Text(input.Byte());
  frame.data_bytes = payload.size();
  frame.crc32c = Crc32c(ByteSpan(payload));
  *payload_bytes = payload.size();
  return EncodeFrameHead(frame) + payload;
}

TensorMessage MakeMessage(Allocator& allocator, bool down, FuzzInput& input) {
  TensorMessage message;
  message.kind = down ? MessageKind::kActivation : MessageKind::kGradient;
  message.fence = {"job-a", 1, 2, 7, 1};
  message.micro_batch = MicroBatchId(input.Byte());
  message.sent_unix_nanos = 1;
  message.tensors.push_back(
      *MakeTensor(allocator, MemoryKind::kActivations, DType::kF32, Shape{1 + input.Byte() % 8}));
  return message;
}

class End {
 public:
  End(bool client, Allocator* allocator)
      : core_(std::make_shared<LinkCore>(
            LinkCore::Options{.boundary = {"job-a", 1, 2, CellId(0)},
                              .peer = "stage 0",
                              .upstream_end = client,
                              .link = {.capacity_messages = kCapacity, .chunk_bytes = 16},
                              .allocator = allocator,
                              .totals = &totals_,
                              .on_transfer = [](const LinkTransfer&) {},
                              .progress = nullptr})),
        stream_(std::make_shared<OpenStream>(client)),
        allocator_(allocator) {
    LinkHello hello;
    hello.boundary = core_->options().boundary;
    hello.capacity = 2;
    core_->Attach(stream_, client ? std::nullopt : std::optional(hello));
    if (client) Read(EncodeHello(hello), 1);
  }

  ~End() {
    core_->Close(absl::CancelledError("the end"));
    if (stream_->writing) WriteDone(false);
    core_->OnGone(grpc::Status::OK);
    core_->Detach();
    CHECK(!core_->status().ok()) << "closed";
  }

  void Act(FuzzInput& input) {
    const uint8_t action = input.Byte();
    switch (action % 8) {
      case 0: {
        const std::string bytes = input.Text(input.Number(2));
        CheckDecoding(bytes, action);
        came_ += bytes.size();
        return Read(bytes, action);
      }
      case 1:
      case 2: {
        size_t payload_bytes = 0;
        const std::string chunk = MakeChunk(input, &payload_bytes);
        came_ += payload_bytes;
        return Read(chunk, action);
      }
      case 3:
        return Control(input, action);
      case 4:
        if (core_->TrySend(MakeMessage(*allocator_, core_->options().upstream_end, input))) ++sent_;
        return;
      case 5:
        if (stream_->writing) WriteDone(action != 0xfd);
        return;
      case 6:
        if (core_->TryReceive().has_value()) ++received_;
        return;
      case 7:
        if (action == 0xff && reads_) {
          reads_ = false;
          core_->OnReadFailed();
        }
    }
  }

  // A credit or a repeat, with small numbers: those of a link that works, or next to them.
  void Control(FuzzInput& input, uint8_t cut) {
    const uint8_t numbers = input.Byte();
    const uint32_t round = numbers >> 4 & 7, count = numbers & 7;
    Read((numbers & 0x80) == 0 ? EncodeCredit({count, round}) : EncodeRepeat({round, count}), cut);
  }

  void CheckBounds() const {
    const LinkStatistics statistics = core_->statistics();
    CHECK(statistics.sent_messages == sent_ && statistics.received_messages == received_)
        << "messages";
    CHECK(statistics.inflight_messages <= kCapacity) << statistics.inflight_messages;
    CHECK(allocator_->Use().total_current <= kMemory) << "memory";
    CHECK_LE(totals_.received_bytes.load(), came_) << "a tensor has bytes that nobody sent";
  }

 private:
  void Read(const std::string& bytes, size_t cut) {
    if (!reads_) return;
    cut = bytes.empty() ? 0 : cut % bytes.size();
    const grpc::Slice slices[] = {grpc::Slice(bytes.substr(0, cut)),
                                  grpc::Slice(bytes.substr(cut))};
    reads_ = core_->OnRead(grpc::ByteBuffer(slices, 2));
  }
  void WriteDone(bool ok) {
    stream_->writing = false;
    core_->OnWriteDone(ok);
  }

  LinkTotals totals_;
  const std::shared_ptr<LinkCore> core_;
  const std::shared_ptr<OpenStream> stream_;
  Allocator* const allocator_;
  bool reads_ = true;
  uint64_t sent_ = 0, received_ = 0;
  uint64_t came_ = 0;  // bytes of tensors, at most
};

}  // namespace

void FuzzLink(FuzzInput input) {
  google::protobuf::LogSilencer silence;  // of jobs that are no UTF-8
  const std::unique_ptr<Allocator> allocator = MakeHostAllocator(kMemory);
  {
    End end(input.Byte() % 2 == 0, allocator.get());
    for (int actions = 0; !input.empty() && actions < 1000; ++actions) {
      end.Act(input);
      end.CheckBounds();
    }
  }
  CHECK_EQ(allocator->Use().total_current, 0) << "all memory came back";
}

}  // namespace stagecoach

FUZZ_TARGET(link, FuzzLink)
