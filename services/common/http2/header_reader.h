// HeaderReader: reads a connection's header blocks as gRPC 1.51 will read them. One header,
// grpclb_client_stats, ends a gRPC server by abort(); no client sends it (CVE-2023-1428 is alike).
// After a block over gRPC's limit, its table of headers differs from the peer's (CVE-2023-32731).
// gRPC reads a block as its bytes come, so they go through here first, however they are cut.
// Ownership: owns nghttp2's decoder, whose table is that of the connection: every block goes
//            through, in order.
// Threads:   thread-compatible.
// Units:     bytes of a block's fields as RFC 9113, 6.5.2 counts them: name, value and 32 each.
// Errors:    false: the connection has to end, before gRPC sees these bytes. refused(): because of
//            a token.
// Source:    RFC 7541; RFC 9113, 8.3.1; gRPC's PROTOCOL-HTTP2.md ("te: trailers").
#ifndef STAGECOACH_SERVICES_COMMON_HTTP2_HEADER_READER_H_
#define STAGECOACH_SERVICES_COMMON_HTTP2_HEADER_READER_H_

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace stagecoach {

// Whether calls may go by this value of an "authorization" field now.
using MayAuthorize = std::function<bool(std::string_view value)>;

class HeaderReader {
 public:
  // most_bytes: limit of the fields of a block; gRPC's must not be lower. may_authorize: empty: any
  // token may.
  explicit HeaderReader(size_t most_bytes, MayAuthorize may_authorize = {});

  void Begin() { bytes_ = 0; }  // a block
  bool Take(std::string_view fragment) { return Inflate(fragment, false); }
  bool End() { return Inflate("", true); }   // the block
  bool refused() const { return refused_; }  // by may_authorize

 private:
  struct Deleter {
    void operator()(nghttp2_hd_inflater* inflater) const { nghttp2_hd_inflate_del(inflater); }
  };

  bool Inflate(std::string_view fragment, bool last);
  bool IsWelcome(std::string_view name, std::string_view value);

  size_t most_bytes_;
  MayAuthorize may_authorize_;
  bool refused_ = false;
  size_t bytes_ = 0;  // of the block's fields so far
  std::unique_ptr<nghttp2_hd_inflater, Deleter> inflater_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_HTTP2_HEADER_READER_H_
