// SPDX-License-Identifier: BSD-3-Clause
#include "transport/fabric/libfabric.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "sys/fault.hpp"

namespace stretto::transport {
namespace {

constexpr std::uint32_t kVersion = ofi::version(1, 11);  // what this is written for
constexpr int kModes =
    ofi::kMrLocal | ofi::kMrVirtualAddress | ofi::kMrAllocated | ofi::kMrProviderKey | ofi::kMrEndpoint;

// Providers over what the system's own connections use as well, or that reach this node only.
bool is_software(const char* provider) {
  constexpr const char* kSoftware[] = {"tcp", "net", "sockets", "udp", "shm", "sm2", "lpp_stub"};
  const std::size_t length = std::strcspn(provider, ";");
  return std::any_of(std::begin(kSoftware), std::end(kSoftware), [&](const char* name) {
    return std::strlen(name) == length && std::strncmp(name, provider, length) == 0;
  });
}

bool is_reachable(const ofi::Info& info, const Libfabric::Settings& settings) {
  if (info.addr_format == ofi::kSockaddrIn6) return false;
  if (info.addr_format != ofi::kSockaddrIn || info.src_addr == nullptr) return true;
  ofi::SockaddrIn own{};
  std::memcpy(&own, info.src_addr, std::min(sizeof own, info.src_addrlen));
  return std::any_of(settings.addresses, settings.addresses + settings.address_count,
                     [&](const sys::HostAddress& address) { return address.ip == own.ip; });
}

bool is_usable(const ofi::Info& info, const Libfabric::Settings& settings) {
  return is_reachable(info, settings) && info.ep_attr->max_msg_size >= Fabric::kSlotBytes;
}

bool is_suitable(const ofi::Info& info, const Libfabric::Settings& settings) {
  return is_usable(info, settings) && (*settings.provider != 0 || !is_software(info.fabric_attr->prov_name));
}

// Null: none. The caller frees it.
ofi::Info* find_all(const ofi::Library& library, const char* provider) {
  ofi::Info* const hints = library.dupinfo(nullptr);
  if (hints == nullptr) return nullptr;
  hints->caps = ofi::kMsg | ofi::kRma;
  hints->mode = ofi::kContext | ofi::kContext2;
  hints->ep_attr->type = ofi::kReliableDatagram;
  hints->domain_attr->mr_mode = kModes;
  hints->domain_attr->threading = ofi::kThreadDomain;
  hints->domain_attr->resource_mgmt = ofi::kResourcesManaged;
  if (*provider != 0) hints->fabric_attr->prov_name = strdup(provider);  // the library frees it
  ofi::Info* found = nullptr;
  const ofi::WithoutMonitor no_monitor(library);
  if (library.getinfo(kVersion, nullptr, nullptr, 0, hints, &found) != 0) found = nullptr;
  library.freeinfo(hints);
  return found;
}

template <class Object>
void close_object(Object** object) {
  if (*object != nullptr) (void)(*object)->fid.ops->close(&(*object)->fid);
  *object = nullptr;
}

void copy_word(char* to, std::size_t capacity, const char* from) {
  std::snprintf(to, capacity, "%s", from != nullptr ? from : "");
}

}  // namespace

bool Libfabric::fails(const char* what, int error) {
  if (error == 0) return false;
  std::snprintf(why_, sizeof why_, "provider %s: %s: %s", address_.provider, what, strerrordesc_np(std::abs(error)));
  return true;
}

bool Libfabric::find(const Settings& settings) {
  settings_ = settings;
  process_ = sys::process_id();
  const char* why = nullptr;
  library_ = ofi::library(&why);
  if (library_ == nullptr)
    copy_word(why_, sizeof why_, why);
  else
    copy_word(why_, sizeof why_,
              *settings.provider != 0 ? "no such provider can read remote memory here"
                                      : "no provider of a fast network is here");
  if (library_ == nullptr) return false;
  found_ = find_all(*library_, settings.provider);
  return first() != nullptr;
}

ofi::Info* Libfabric::first() const {
  ofi::Info* info = found_;
  while (info != nullptr && !is_suitable(*info, settings_)) info = info->next;
  return info;
}

const char* Libfabric::provider() const { return first()->fabric_attr->prov_name; }
const char* Libfabric::domain() const { return first()->domain_attr->name; }

bool Libfabric::begin() {
  void* memory = nullptr;
  bool opened = !fails("memory", sys::map_unforked(kBytes, &memory));
  if (opened) {
    memory_ = static_cast<char*>(memory);
    opened = false;
    for (ofi::Info* info = first(); info != nullptr && !opened; info = info->next)
      opened = is_suitable(*info, settings_) && open(info);
  }
  if (!opened && settings_.failed != nullptr) settings_.failed(why_);
  return opened;
}

bool Libfabric::open(ofi::Info* info) {
  copy_word(address_.provider, sizeof address_.provider, info->fabric_attr->prov_name);
  address_.format = info->addr_format;
  has_virtual_addresses_ = (info->domain_attr->mr_mode & ofi::kMrVirtualAddress) != 0;
  const bool opened = !fails("fi_fabric", library_->fabric(info->fabric_attr, &fabric_, nullptr)) &&
                      !fails("fi_domain", fabric_->ops->domain(fabric_, info, &domain_, nullptr)) && open_queue() &&
                      open_endpoint(info) && register_memory(info->domain_attr->mr_mode);
  if (!opened) close_objects();
  return opened;
}

// Without a descriptor the driver asks again and again.
bool Libfabric::open_queue() {
  ofi::CqAttr attributes{};
  attributes.size = 4 * kSlots;
  attributes.format = ofi::kFormatContext;
  attributes.wait_obj = ofi::kWaitDescriptor;
  if (domain_->ops->cq_open(domain_, &attributes, &queue_, nullptr) == 0) {
    if (queue_->fid.ops->control(&queue_->fid, ofi::kGetWait, &descriptor_) == 0) return true;
    descriptor_ = -1;
    close_object(&queue_);
  }
  attributes.wait_obj = ofi::kWaitNone;
  return !fails("fi_cq_open", domain_->ops->cq_open(domain_, &attributes, &queue_, nullptr));
}

bool Libfabric::open_endpoint(ofi::Info* info) {
  ofi::AvAttr attributes{};
  if (fails("fi_av_open", domain_->ops->av_open(domain_, &attributes, &peers_, nullptr)) ||
      fails("fi_endpoint", domain_->ops->endpoint(domain_, info, &endpoint_, nullptr)))
    return false;
  ofi::Fid* const own = &endpoint_->fid;
  if (fails("fi_ep_bind", own->ops->bind(own, &peers_->fid, 0)) ||
      fails("fi_ep_bind", own->ops->bind(own, &queue_->fid, ofi::kTransmit | ofi::kReceive)) ||
      fails("fi_enable", own->ops->control(own, ofi::kEnable, nullptr)))
    return false;
  std::size_t bytes = sizeof address_.data;
  if (fails("fi_getname", endpoint_->cm->getname(own, address_.data, &bytes))) return false;
  address_.bytes = static_cast<std::uint32_t>(bytes);
  return true;
}

bool Libfabric::register_memory(int mode) {
  return register_half(0, ofi::kRemoteRead, mode, &outgoing_) && register_half(1, ofi::kRead, mode, &landings_);
}

bool Libfabric::register_half(int half, std::uint64_t access, int mode, ofi::MrFid** made) {
  int error = -sys::fault::strike("fabric_register");
  if (error == 0)
    error = domain_->mr->reg(&domain_->fid, memory_ + half * (kBytes / 2), kBytes / 2, access, 0,
                             static_cast<std::uint64_t>(half + 1), 0, made, nullptr);
  if (error == 0 && (mode & ofi::kMrEndpoint) != 0) {
    ofi::Fid* const memory = &(*made)->fid;
    error = memory->ops->bind(memory, &endpoint_->fid, 0);
    if (error == 0) error = memory->ops->control(memory, ofi::kEnable, nullptr);
  }
  return !fails("fi_mr_reg", error);
}

void Libfabric::close_objects() {
  close_object(&endpoint_);
  close_object(&outgoing_);
  close_object(&landings_);
  close_object(&queue_);
  close_object(&peers_);
  close_object(&domain_);
  close_object(&fabric_);
  descriptor_ = -1;
}

// The child of a fork has neither this memory nor the right to what the network has mapped.
void Libfabric::close() {
  if (process_ != sys::process_id()) return;
  close_objects();
  if (found_ != nullptr) library_->freeinfo(found_);
  found_ = nullptr;
  if (memory_ != nullptr) sys::unmap(memory_, kBytes);
  memory_ = nullptr;
}

int Libfabric::add_peer(const FabricAddress& address, std::uint64_t* name) {
  if (const int error = sys::fault::strike("fabric_add_peer")) return error;
  if (std::strcmp(address.provider, address_.provider) != 0 || address.format != address_.format) return EAFNOSUPPORT;
  const int count = peers_->ops->insert(peers_, address.data, 1, name, 0, nullptr);
  return count == 1 ? 0 : EADDRNOTAVAIL;
}

FabricWindow Libfabric::window(std::uint32_t slot) const {
  const std::uint64_t begin = has_virtual_addresses_ ? reinterpret_cast<std::uintptr_t>(memory_) : 0;
  return {begin + at(slot), outgoing_->key};
}

int Libfabric::read(std::uint64_t peer, const FabricWindow& from, std::uint64_t bytes, std::uint32_t landing) {
  if (const int error = sys::fault::strike("fabric_read")) return error;
  const std::ptrdiff_t result = endpoint_->rma->read(endpoint_, this->landing(landing), bytes, landings_->mem_desc,
                                                     peer, from.address, from.key, &contexts_[landing]);
  return static_cast<int>(-result);
}

int Libfabric::poll(FabricDone* done, int capacity) {
  constexpr int kMost = 16;
  if (sys::fault::strike("fabric_poll") != 0) return -1;
  ofi::CqEntry entries[kMost];
  const std::ptrdiff_t count = queue_->ops->read(queue_, entries, static_cast<std::size_t>(std::min(capacity, kMost)));
  if (count == -EAGAIN || count == 0) return 0;
  if (count == -ofi::kErrorAvailable) return take_error(done);
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const auto landing = static_cast<ofi::Context*>(entries[i].op_context) - contexts_;
    done[i] = {static_cast<std::uint32_t>(landing), sys::fault::strike("fabric_read.done")};
  }
  return count > 0 ? static_cast<int>(count) : -1;
}

int Libfabric::take_error(FabricDone* done) {
  ofi::CqError entry{};
  const std::ptrdiff_t count = queue_->ops->readerr(queue_, &entry, 0);
  if (count == -EAGAIN) return 0;
  auto* const context = static_cast<ofi::Context*>(entry.op_context);
  if (count != 1) return -1;
  if (context < contexts_ || context >= contexts_ + kSlots) return 0;  // of what peers do here: they see it, too
  *done = {static_cast<std::uint32_t>(context - contexts_), entry.err != 0 ? entry.err : EIO};
  return 1;
}

bool Libfabric::may_wait() {
  if (descriptor_ < 0) return true;
  ofi::Fid* waits = &queue_->fid;
  return fabric_->ops->trywait(fabric_, &waits, 1) == 0;
}

const ofi::Library* libfabric_offers(const Libfabric::Settings& settings, void (*each)(void*, const FabricOffer&),
                                     void* context, const char** why) {
  const ofi::Library* const library = ofi::library(why);
  if (library == nullptr) return nullptr;
  ofi::Info* const all = find_all(*library, settings.provider);
  for (const ofi::Info* info = all; info != nullptr; info = info->next) {
    const char* const provider = info->fabric_attr->prov_name;
    each(context, {provider, info->domain_attr->name, is_software(provider), is_usable(*info, settings)});
  }
  library->freeinfo(all);
  return library;
}

}  // namespace stretto::transport
