// SPDX-License-Identifier: BSD-3-Clause
// The part of libfabric's binary interface that Stretto uses, so that it builds on machines without
// libfabric's headers. The names are those of fi_fabric(7), fi_getinfo(3), fi_domain(3), fi_mr(3),
// fi_av(3), fi_cq(3), fi_endpoint(3) and fi_rma(3), without their prefix. Members that Stretto does
// not use are there for their place only.
//
// libfabric lets these structures grow at their ends alone, and names the state of its interface by
// symbol versions. This is FABRIC_1.3, that of libfabric 1.11, which later ones keep. All of these
// structures but the small ones with `Attr` and `Error` in their names are made by the library. The
// unit test LibfabricAbi compares with the headers, where they are.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::transport::ofi {

using Address = std::uint64_t;  // of a peer: fi_addr_t
using Unused = void (*)();

struct SockaddrIn {
  std::uint16_t family, port;
  std::uint32_t ip;  // in network order
};

// ---- what is looked for ----

inline constexpr std::uint64_t kMsg = 1u << 1, kRma = 1u << 2, kRead = 1u << 8, kReceive = 1u << 10,
                               kTransmit = 1u << 11, kRemoteRead = 1u << 12;
inline constexpr std::uint64_t kContext = std::uint64_t{1} << 59, kContext2 = std::uint64_t{1} << 52;
inline constexpr int kMrLocal = 1 << 2, kMrVirtualAddress = 1 << 4, kMrAllocated = 1 << 5, kMrProviderKey = 1 << 6,
                     kMrEndpoint = 1 << 9;
inline constexpr int kReliableDatagram = 3;  // FI_EP_RDM
inline constexpr int kThreadDomain = 3, kResourcesManaged = 2, kWaitNone = 0, kWaitDescriptor = 3, kFormatContext = 1;
inline constexpr std::uint32_t kSockaddrIn = 2, kSockaddrIn6 = 3;
inline constexpr int kGetWait = 5, kEnable = 6;  // of control()
inline constexpr int kErrorAvailable = 259;      // FI_EAVAIL
constexpr std::uint32_t version(std::uint32_t major, std::uint32_t minor) { return major << 16 | minor; }

struct TransmitAttr {
  std::uint64_t caps, mode, op_flags, msg_order, comp_order;
  std::size_t inject_size, size, iov_limit, rma_iov_limit;
};
struct EndpointAttr {
  int type;
  std::uint32_t protocol, protocol_version;
  std::size_t max_msg_size;
};
struct DomainAttr {
  void* domain;
  char* name;
  int threading, control_progress, data_progress, resource_mgmt, av_type, mr_mode;
  std::size_t mr_key_size;
};
struct FabricAttr {
  void* fabric;
  char* name;
  char* prov_name;
  std::uint32_t prov_version, api_version;
};
struct Info {
  Info* next;
  std::uint64_t caps, mode;
  std::uint32_t addr_format;
  std::size_t src_addrlen, dest_addrlen;
  void *src_addr, *dest_addr, *handle;
  TransmitAttr* tx_attr;
  void* rx_attr;
  EndpointAttr* ep_attr;
  DomainAttr* domain_attr;
  FabricAttr* fabric_attr;
};

// ---- objects ----

struct Fid;
struct Ops {
  std::size_t size;
  int (*close)(Fid*);
  int (*bind)(Fid*, Fid* to, std::uint64_t flags);
  int (*control)(Fid*, int command, void* argument);
};
struct Fid {
  std::size_t fclass;
  void* context;
  Ops* ops;
};

struct DomainFid;
struct FabricFid;
struct FabricOps {
  std::size_t size;
  int (*domain)(FabricFid*, Info*, DomainFid** made, void* context);
  Unused passive_ep, eq_open, wait_open;
  int (*trywait)(FabricFid*, Fid** fids, int count);
};
struct FabricFid {
  Fid fid;
  FabricOps* ops;
};

struct AvFid;
struct CqFid;
struct EpFid;
struct MrFid;
struct AvAttr {
  int type;
  int rx_ctx_bits;
  std::size_t count, ep_per_node;
  const char* name;
  void* map_addr;
  std::uint64_t flags;
};
struct CqAttr {
  std::size_t size;
  std::uint64_t flags;
  int format, wait_obj, signaling_vector, wait_cond;
  void* wait_set;
};
struct DomainOps {
  std::size_t size;
  int (*av_open)(DomainFid*, AvAttr*, AvFid** made, void* context);
  int (*cq_open)(DomainFid*, CqAttr*, CqFid** made, void* context);
  int (*endpoint)(DomainFid*, Info*, EpFid** made, void* context);
};
struct MrOps {
  std::size_t size;
  int (*reg)(Fid* domain, const void* memory, std::size_t bytes, std::uint64_t access, std::uint64_t offset,
             std::uint64_t requested_key, std::uint64_t flags, MrFid** made, void* context);
};
struct DomainFid {
  Fid fid;
  DomainOps* ops;
  MrOps* mr;
};
struct MrFid {
  Fid fid;
  void* mem_desc;
  std::uint64_t key;
};

struct AvOps {
  std::size_t size;
  int (*insert)(AvFid*, const void* addresses, std::size_t count, Address* names, std::uint64_t flags, void* context);
};
struct AvFid {
  Fid fid;
  AvOps* ops;
};

struct CqEntry {
  void* op_context;
};
struct CqError {
  void* op_context;
  std::uint64_t flags;
  std::size_t len;
  void* buf;
  std::uint64_t data, tag;
  std::size_t olen;
  int err, prov_errno;
  void* err_data;
  std::size_t err_data_size;
};
struct CqOps {
  std::size_t size;
  std::ptrdiff_t (*read)(CqFid*, void* entries, std::size_t count);
  Unused readfrom;
  std::ptrdiff_t (*readerr)(CqFid*, CqError*, std::uint64_t flags);
};
struct CqFid {
  Fid fid;
  CqOps* ops;
};

struct CmOps {
  std::size_t size;
  Unused setname;
  int (*getname)(Fid*, void* address, std::size_t* bytes);
};
struct RmaOps {
  std::size_t size;
  std::ptrdiff_t (*read)(EpFid*, void* to, std::size_t bytes, void* desc, Address from, std::uint64_t address,
                         std::uint64_t key, void* context);
};
struct EpFid {
  Fid fid;
  void* ops;
  CmOps* cm;
  void* msg;
  RmaOps* rma;
};

// The library's own while an operation is under way (FI_CONTEXT2).
struct Context {
  void* internal[8];
};

}  // namespace stretto::transport::ofi
