// embedding: token plus learned position, then dropout; the first layer. With `sinusoidal` the
// position has no parameter (operations/attention/add_sinusoids.h). With `scaled` token and learned
// position begin with deviation 1 / sqrt(width), and their sum is multiplied by sqrt(width). So a
// tied head begins with logits of ordinary size (Vaswani et al., 1706.03762, section 3.4).
// Parameters: token.weight [vocabulary, width], position.weight [context, width] if position and
// not sinusoidal.
#ifndef STAGECOACH_NETWORK_LAYERS_EMBEDDING_H_
#define STAGECOACH_NETWORK_LAYERS_EMBEDDING_H_

namespace stagecoach {

struct EmbeddingSpec {
  static constexpr const char* kKind = "embedding";
  double dropout = 0;    // of the sum
  bool position = true;  // learned
  bool sinusoidal = false;
  bool scaled = false;
  template <typename Visitor>
  void Visit(Visitor& visit) {
    visit.Rate("dropout", dropout);
    bool no_position = !position;  // what a job leaves out is false
    visit.Flag("no_position", no_position);
    position = !no_position;
    visit.Flag("sinusoidal", sinusoidal);
    visit.Flag("scaled", scaled);
  }
};

}  // namespace stagecoach

#endif  // STAGECOACH_NETWORK_LAYERS_EMBEDDING_H_
