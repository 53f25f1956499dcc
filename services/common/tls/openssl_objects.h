// Owned<T>: an object of OpenSSL that is freed with its owner, and the few steps that every file on
// certificates takes.
// Threads: pure functions.
#ifndef STAGECOACH_SERVICES_COMMON_TLS_OPENSSL_OBJECTS_H_
#define STAGECOACH_SERVICES_COMMON_TLS_OPENSSL_OBJECTS_H_

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace stagecoach {

struct OpensslDeleter {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(BIGNUM* p) const { BN_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
  void operator()(STACK_OF(X509) * p) const { sk_X509_pop_free(p, X509_free); }
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, OpensslDeleter>;

// OpenSSL keeps errors per thread: what is left there would be read as gRPC's.
struct ErrorsCleared {
  ~ErrorsCleared() { ERR_clear_error(); }
};

// The text must outlive the reader.
inline Owned<BIO> ReaderOf(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The text in a BIO_s_mem.
inline std::string TextIn(const Owned<BIO>& memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

// "Nov 30 12:00:00 2026 GMT".
inline std::string TimeText(const ASN1_TIME* time) {
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  ASN1_TIME_print(text.get(), time);
  return TextIn(text);
}

}  // namespace stagecoach

#endif  // STAGECOACH_SERVICES_COMMON_TLS_OPENSSL_OBJECTS_H_
