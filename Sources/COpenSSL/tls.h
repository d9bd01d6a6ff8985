/* What of OpenSSL's TLS is macros, which Swift does not see, or is said shorter in C. */
#ifndef VENCEJO_TLS_H
#define VENCEJO_TLS_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

/* Without this OpenSSL asks for a key's password on the terminal. */
static inline int tls_no_password(char *buffer, int size, int writing, void *user) {
  (void)buffer, (void)size, (void)writing, (void)user;
  return -1;
}

/* ALPN (RFC 7301): HTTP/2 or nothing. */
static inline int tls_select_h2(SSL *ssl, const unsigned char **out, unsigned char *out_length,
                                const unsigned char *in, unsigned int length, void *user) {
  (void)ssl, (void)user;
  for (unsigned int i = 0; i < length && in[i] < length - i; i += 1 + in[i])
    if (in[i] == 2 && memcmp(in + i + 1, "h2", 2) == 0) {
      *out = in + i + 1;
      *out_length = 2;
      return SSL_TLSEXT_ERR_OK;
    }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* RFC 9113, section 9.2: TLS 1.2 at least, no compression, no renegotiation, and of TLS
 * 1.2's ciphers only those with ephemeral keys and authenticated encryption. */
static inline int tls_configure(SSL_CTX *context, int is_server) {
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") != 1)
    return 0;
  if (!is_server)
    return SSL_CTX_set_alpn_protos(context, (const unsigned char *)"\x02h2", 3) == 0;
  SSL_CTX_set_alpn_select_cb(context, tls_select_h2, NULL);
  /* A ticket of one server must not open another's door where certificates are asked for. */
  return SSL_CTX_set_session_id_context(context, (const unsigned char *)"vencejo", 7) == 1 &&
         SSL_CTX_set_num_tickets(context, 1) == 1;
}

/* Takes the certificate over when it succeeds. */
static inline int tls_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
  return SSL_CTX_add0_chain_cert(context, certificate) == 1;
}

static inline int tls_set_server_name(SSL *ssl, const char *name) {
  return SSL_set_tlsext_host_name(ssl, name) == 1;
}

static inline void tls_bio_must_retry_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void tls_bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

/* Whether reading PEM ended because there is no more of it. */
static inline int tls_is_end_of_pem(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

static inline int tls_reason(unsigned long error) {
  return ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
}

/* The subject as RFC 2253 writes it, in UTF-8. */
static inline int tls_print_subject(BIO *bio, X509 *certificate) {
  return X509_NAME_print_ex(bio, X509_get_subject_name(certificate), 0,
                            XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) >= 0;
}

/* Calls `visit` with the kind and the bytes of each alternative name (RFC 5280, 4.2.1.6). */
static inline void tls_visit_names(
    X509 *certificate, void *user,
    void (*visit)(void *user, int kind, const unsigned char *bytes, int count)) {
  GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
    int kind = -1;
    void *value = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &kind);
    if (value && (kind == GEN_DNS || kind == GEN_URI || kind == GEN_EMAIL || kind == GEN_IPADD))
      visit(user, kind, ASN1_STRING_get0_data(value), ASN1_STRING_length(value));
  }
  GENERAL_NAMES_free(names);
}

#endif
