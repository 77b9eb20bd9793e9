// SPDX-License-Identifier: BSD-3-Clause
// libfabric_abi.hpp says of libfabric's interface what libfabric's own headers say.
#include "transport/fabric/libfabric_abi.hpp"

#include <gtest/gtest.h>

#if __has_include(<rdma/fabric.h>)
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

namespace stretto::transport::ofi {
namespace {

#define SAME_PLACE(ours, member, theirs, their_member) \
  static_assert(offsetof(ours, member) == offsetof(theirs, their_member))

static_assert(kMsg == FI_MSG && kRma == FI_RMA && kRead == FI_READ && kReceive == FI_RECV);
static_assert(kTransmit == FI_TRANSMIT && kRemoteRead == FI_REMOTE_READ);
static_assert(kContext == FI_CONTEXT && kContext2 == FI_CONTEXT2 && sizeof(Context) == sizeof(fi_context2));
static_assert(kMrLocal == FI_MR_LOCAL && kMrVirtualAddress == FI_MR_VIRT_ADDR && kMrAllocated == FI_MR_ALLOCATED);
static_assert(kMrProviderKey == FI_MR_PROV_KEY && kMrEndpoint == FI_MR_ENDPOINT);
static_assert(kReliableDatagram == FI_EP_RDM && kThreadDomain == FI_THREAD_DOMAIN);
static_assert(kResourcesManaged == FI_RM_ENABLED && kWaitNone == FI_WAIT_NONE && kWaitDescriptor == FI_WAIT_FD);
static_assert(kFormatContext == FI_CQ_FORMAT_CONTEXT && kSockaddrIn == FI_SOCKADDR_IN);
static_assert(kSockaddrIn6 == FI_SOCKADDR_IN6 && kGetWait == FI_GETWAIT && kEnable == FI_ENABLE);
static_assert(kErrorAvailable == FI_EAVAIL && version(1, 11) == FI_VERSION(1, 11));

SAME_PLACE(EndpointAttr, type, fi_ep_attr, type);
SAME_PLACE(EndpointAttr, max_msg_size, fi_ep_attr, max_msg_size);
SAME_PLACE(DomainAttr, name, fi_domain_attr, name);
SAME_PLACE(DomainAttr, threading, fi_domain_attr, threading);
SAME_PLACE(DomainAttr, resource_mgmt, fi_domain_attr, resource_mgmt);
SAME_PLACE(DomainAttr, mr_mode, fi_domain_attr, mr_mode);
SAME_PLACE(FabricAttr, prov_name, fi_fabric_attr, prov_name);
SAME_PLACE(Info, next, fi_info, next);
SAME_PLACE(Info, caps, fi_info, caps);
SAME_PLACE(Info, mode, fi_info, mode);
SAME_PLACE(Info, addr_format, fi_info, addr_format);
SAME_PLACE(Info, src_addrlen, fi_info, src_addrlen);
SAME_PLACE(Info, src_addr, fi_info, src_addr);
SAME_PLACE(Info, ep_attr, fi_info, ep_attr);
SAME_PLACE(Info, domain_attr, fi_info, domain_attr);
SAME_PLACE(Info, fabric_attr, fi_info, fabric_attr);

SAME_PLACE(SockaddrIn, ip, sockaddr_in, sin_addr);
SAME_PLACE(Fid, ops, fid, ops);
SAME_PLACE(Ops, close, fi_ops, close);
SAME_PLACE(Ops, bind, fi_ops, bind);
SAME_PLACE(Ops, control, fi_ops, control);
SAME_PLACE(FabricFid, ops, fid_fabric, ops);
SAME_PLACE(FabricOps, domain, fi_ops_fabric, domain);
SAME_PLACE(FabricOps, trywait, fi_ops_fabric, trywait);
SAME_PLACE(DomainFid, ops, fid_domain, ops);
SAME_PLACE(DomainFid, mr, fid_domain, mr);
SAME_PLACE(DomainOps, av_open, fi_ops_domain, av_open);
SAME_PLACE(DomainOps, cq_open, fi_ops_domain, cq_open);
SAME_PLACE(DomainOps, endpoint, fi_ops_domain, endpoint);
SAME_PLACE(MrOps, reg, fi_ops_mr, reg);
SAME_PLACE(MrFid, mem_desc, fid_mr, mem_desc);
SAME_PLACE(MrFid, key, fid_mr, key);
SAME_PLACE(AvFid, ops, fid_av, ops);
SAME_PLACE(AvOps, insert, fi_ops_av, insert);
SAME_PLACE(CqFid, ops, fid_cq, ops);
SAME_PLACE(CqOps, read, fi_ops_cq, read);
SAME_PLACE(CqOps, readerr, fi_ops_cq, readerr);
SAME_PLACE(EpFid, cm, fid_ep, cm);
SAME_PLACE(EpFid, rma, fid_ep, rma);
SAME_PLACE(CmOps, getname, fi_ops_cm, getname);
SAME_PLACE(RmaOps, read, fi_ops_rma, read);

// What Stretto makes itself is as long as well.
SAME_PLACE(CqAttr, format, fi_cq_attr, format);
SAME_PLACE(CqAttr, wait_obj, fi_cq_attr, wait_obj);
static_assert(sizeof(CqAttr) == sizeof(fi_cq_attr) && sizeof(AvAttr) == sizeof(fi_av_attr));
SAME_PLACE(CqError, err, fi_cq_err_entry, err);
static_assert(sizeof(CqError) == sizeof(fi_cq_err_entry) && sizeof(CqEntry) == sizeof(fi_cq_entry));

// Functions take the same arguments, as far as a pointer is a pointer.
template <class R, class... A>
constexpr std::size_t arguments(R (*)(A...)) {
  return sizeof...(A);
}
#define SAME_CALL(ours, member, theirs) \
  static_assert(arguments(decltype(ours::member){}) == arguments(decltype(theirs::member){}))
SAME_CALL(Ops, bind, fi_ops);
SAME_CALL(Ops, control, fi_ops);
SAME_CALL(FabricOps, domain, fi_ops_fabric);
SAME_CALL(FabricOps, trywait, fi_ops_fabric);
SAME_CALL(DomainOps, av_open, fi_ops_domain);
SAME_CALL(DomainOps, cq_open, fi_ops_domain);
SAME_CALL(DomainOps, endpoint, fi_ops_domain);
SAME_CALL(MrOps, reg, fi_ops_mr);
SAME_CALL(AvOps, insert, fi_ops_av);
SAME_CALL(CqOps, read, fi_ops_cq);
SAME_CALL(CqOps, readerr, fi_ops_cq);
SAME_CALL(CmOps, getname, fi_ops_cm);
SAME_CALL(RmaOps, read, fi_ops_rma);

TEST(LibfabricAbi, IsThatOfTheHeaders) { SUCCEED(); }  // the compiler has compared

}  // namespace
}  // namespace stretto::transport::ofi
#else
TEST(LibfabricAbi, IsThatOfTheHeaders) { GTEST_SKIP() << "no rdma/fabric.h (Debian: libfabric-dev)"; }
#endif
