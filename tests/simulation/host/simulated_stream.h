// SimulatedStream: one end of a boundary's gRPC stream, as ClientStream and ServerStream are, on a
// simulated connection. What it carries are the bytes of real frames, of which a bit may be flipped
// on the way. Some flips hit what is around the frames: then the connection breaks, or nothing more
// comes of the stream in this direction and nobody is told.
// Ownership: kept by its core and its connection, and by what is posted.
// Threads:   one; reactions are events of the process.
#ifndef STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_STREAM_H_
#define STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_STREAM_H_

#include <memory>
#include <optional>
#include <string>

#include "stage/link/grpc/link_core.h"
#include "tests/simulation/host/simulated_links.h"
#include "tests/simulation/host/simulated_network.h"

namespace stagecoach {

class SimulatedStream final : public LinkStream,
                              public std::enable_shared_from_this<SimulatedStream> {
 public:
  // client: it dials; else it was dialled, by this connection.
  SimulatedStream(SimulatedLinks* links, bool client,
                  SimulatedNetwork::ConnectionPointer connection, std::shared_ptr<LinkCore> core);

  void DialTo(int host);                                              // a client's begin
  void Bind(std::shared_ptr<LinkCore> core, const LinkHello& hello);  // of a server
  void Refuse(const absl::Status& status);                            // of a server
  void LetGo();  // the process dies: nothing more happens here
  bool over() const { return over_; }
  bool bound() const { return core_ != nullptr; }
  int peer_host() const { return peer_host_; }  // of a server, who dialled

  void Write(const grpc::ByteBuffer* buffer) override;
  void End(const absl::Status& reason) override;
  void Cancel() override;
  bool is_client() const override { return client_; }

 private:
  int self() const { return client_ ? 0 : 1; }
  void Post(double seconds, void (SimulatedStream::*what)());
  void Connected(SimulatedNetwork::ConnectionPointer connection);
  void ListenForTheEnd();
  void SendBytes(std::string bytes);
  void OnBytes(const std::string& bytes);
  void OnFirst(const grpc::ByteBuffer& buffer);
  void OnOver(const grpc::Status& status);
  void Redial();
  void WriteEnded();
  void Cancelled();
  void Gone();

  SimulatedLinks* links_;  // null: the process has died
  SimulatedNetwork* const network_;
  const int host_;
  const uint64_t process_;
  const bool client_;
  SimulatedNetwork::ConnectionPointer connection_;  // null: not connected yet
  std::shared_ptr<LinkCore> core_;
  std::weak_ptr<SimulatedStream> peer_;
  int peer_host_ = -1;
  double backoff_seconds_ = 0.1;
  std::optional<std::string> waiting_;  // to be written once it is connected
  bool swallowed_ = false;              // what is sent from here does not arrive any more
  bool reading_ = true, writing_ = false, finished_ = false, over_ = false, gone_ = false;
  grpc::Status status_;
};

}  // namespace stagecoach

#endif  // STAGECOACH_TESTS_SIMULATION_HOST_SIMULATED_STREAM_H_
