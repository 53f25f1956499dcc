// embedding: token plus learned position, then dropout; the first layer. Parameters: token.weight
// [vocabulary, width], position.weight [context, width] if position.
#ifndef STAGECOACH_NETWORK_LAYERS_EMBEDDING_H_
#define STAGECOACH_NETWORK_LAYERS_EMBEDDING_H_

namespace stagecoach {

struct EmbeddingSpec {
  static constexpr const char* kKind = "embedding";
  double dropout = 0;  // of the sum
  bool position = true;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("dropout", dropout);
    bool no_position = !position;  // what a job leaves out is false
    visit.Flag("no_position", no_position);
    position = !no_position;
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_EMBEDDING_H_
