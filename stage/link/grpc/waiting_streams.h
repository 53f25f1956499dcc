// WaitingStreams: streams that neighbours opened and that belong to no link yet. Silent ones have
// not sent their hello. Early ones have, but their boundary is not accepted yet.
// Ownership: shares the streams.
// Threads:   none of its own; the connector calls it under its mutex and refuses streams outside of
//            it.
// Errors:    UNAVAILABLE if there is no place: the peer tries again. RESOURCE_EXHAUSTED would say
//            that its job is too large.
#ifndef STAGECOACH_STAGE_LINK_GRPC_WAITING_STREAMS_H_
#define STAGECOACH_STAGE_LINK_GRPC_WAITING_STREAMS_H_

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "stage/link/grpc/messages/frame_codec.h"
#include "stage/link/grpc/server_stream.h"

namespace stagecoach {

class WaitingStreams {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  using StreamPointer = std::shared_ptr<ServerStream>;
  struct Peer {
    std::string host, source;  // ServerStream::PeerHost, PeerSource
  };
  struct Places {
    size_t all, of_host, of_peer;
  };
  // A stage that is about to load may rightly have early streams, one for each edge: kMaxCellsPerStage
  // from one peer. As many of the generation before may be left, whose end is not known yet. A peer with hellos of
  // jobs that never come can fill its own places alone. Other hosts, and other certificates on its
  // own host, keep theirs.
  static constexpr Places kSilent = {1024, 512, 256};
  static constexpr Places kEarly = {128, 64, 32};

  struct Early {
    StreamPointer stream;
    LinkHello hello;
    SteadyTime deadline;
    Peer peer;
  };
  struct Refused {
    StreamPointer stream;
    absl::Status reason;
  };

  absl::Status AddSilent(const StreamPointer& stream, SteadyTime deadline);
  bool TakeSilent(ServerStream* stream);  // false: it is not a silent one, or no longer
  absl::Status AddEarly(const StreamPointer& stream, const LinkHello& hello, SteadyTime deadline);
  // In order of arrival. The neighbour is known only when the boundary is accepted. A stream that
  // comes first with a forged hello must not keep the neighbour out.
  std::vector<Early> TakeEarly(const BoundaryId& boundary);
  void Forget(ServerStream* stream);  // it ended
  // The streams past their deadline; the seconds are for their texts.
  std::vector<Refused> TakeLate(SteadyTime now, double connect_seconds, double hello_seconds);
  std::vector<StreamPointer> TakeAll();
  SteadyTime Next(SteadyTime otherwise) const;  // the earliest deadline

 private:
  struct Silent {
    StreamPointer stream;
    SteadyTime deadline;
    Peer peer;
  };
  std::map<ServerStream*, Silent> silent_;
  std::multimap<BoundaryId, Early> early_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_STAGE_LINK_GRPC_WAITING_STREAMS_H_
