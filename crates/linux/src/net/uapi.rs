//! Constants of the kernel's headers (`include/uapi/linux`), with their names there and in the types of the fields that
//! they are written to. Those that `libc` has come from there.

use libc::c_int;

/// Narrows a constant that `libc` has as `c_int`. Does not compile if the value does not fit.
const fn u16_of(value: c_int) -> u16 {
    assert!(0 <= value && value <= u16::MAX as c_int);
    let [low, high, ..] = value.to_le_bytes();
    u16::from_le_bytes([low, high])
}

const fn u8_of(value: c_int) -> u8 {
    let [low, high] = u16_of(value).to_le_bytes();
    assert!(high == 0);
    low
}

const fn u32_of(value: c_int) -> u32 {
    assert!(0 <= value);
    value.unsigned_abs()
}

// netlink.h
pub(crate) const NLM_F_REQUEST: u16 = u16_of(libc::NLM_F_REQUEST);
pub(crate) const NLM_F_ACK: u16 = u16_of(libc::NLM_F_ACK);
pub(crate) const NLM_F_REPLACE: u16 = u16_of(libc::NLM_F_REPLACE);
pub(crate) const NLM_F_EXCL: u16 = u16_of(libc::NLM_F_EXCL);
pub(crate) const NLM_F_CREATE: u16 = u16_of(libc::NLM_F_CREATE);
pub(crate) const NLM_F_APPEND: u16 = u16_of(libc::NLM_F_APPEND);
pub(crate) const NLMSG_ERROR: u16 = u16_of(libc::NLMSG_ERROR);
pub(crate) const NLMSG_HDRLEN: usize = 16;
pub(crate) const NLMSG_ALIGNTO: usize = 4;
pub(crate) const NLA_F_NESTED: u16 = u16_of(libc::NLA_F_NESTED);
pub(crate) const NLA_ALIGNTO: usize = 4;

// rtnetlink.h
pub(crate) use libc::{RTM_DELLINK, RTM_GETLINK, RTM_NEWADDR, RTM_NEWLINK};
pub(crate) const RTN_LOCAL: u32 = libc::RTN_LOCAL as u32;

// if_link.h
pub(crate) use libc::{IFLA_AF_SPEC, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO};
pub(crate) const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
pub(crate) const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
pub(crate) const IFF_UP: u32 = u32_of(libc::IFF_UP);

// if_addr.h
pub(crate) use libc::{IFA_ADDRESS, IFA_CACHEINFO, IFA_LOCAL};
pub(crate) const IFA_F_NODAD: u8 = 2;
/// Lifetime of an address that never expires (`include/net/addrconf.h`).
pub(crate) const INFINITY_LIFE_TIME: u32 = u32::MAX;

// socket.h, in.h
pub(crate) const AF_UNSPEC: u8 = u8_of(libc::AF_UNSPEC);
pub(crate) const AF_INET: u8 = u8_of(libc::AF_INET);
pub(crate) const AF_INET6: u8 = u8_of(libc::AF_INET6);
pub(crate) const IPPROTO_TCP: u8 = u8_of(libc::IPPROTO_TCP);
pub(crate) const IPPROTO_UDP: u8 = u8_of(libc::IPPROTO_UDP);

// netfilter.h, netfilter_ipv4.h
pub(crate) const NFPROTO_INET: u8 = u8_of(libc::NFPROTO_INET);
pub(crate) const NFPROTO_IPV4: u8 = u8_of(libc::NFPROTO_IPV4);
pub(crate) const NFPROTO_IPV6: u8 = u8_of(libc::NFPROTO_IPV6);
pub(crate) const NF_INET_PRE_ROUTING: u32 = u32_of(libc::NF_INET_PRE_ROUTING);
pub(crate) const NF_INET_LOCAL_OUT: u32 = u32_of(libc::NF_INET_LOCAL_OUT);
pub(crate) const NF_IP_PRI_RAW: i32 = libc::NF_IP_PRI_RAW;

// netfilter/nfnetlink.h
pub(crate) const NFNL_SUBSYS_NFTABLES: u16 = u16_of(libc::NFNL_SUBSYS_NFTABLES);
pub(crate) const NFNL_MSG_BATCH_BEGIN: u16 = u16_of(libc::NFNL_MSG_BATCH_BEGIN);
pub(crate) const NFNL_MSG_BATCH_END: u16 = u16_of(libc::NFNL_MSG_BATCH_END);
pub(crate) const NFNETLINK_V0: u8 = 0;

// netfilter/nf_tables.h
pub(crate) const NFT_MSG_NEWTABLE: u16 = u16_of(libc::NFT_MSG_NEWTABLE);
pub(crate) const NFT_MSG_GETTABLE: u16 = u16_of(libc::NFT_MSG_GETTABLE);
pub(crate) const NFT_MSG_DELTABLE: u16 = u16_of(libc::NFT_MSG_DELTABLE);
pub(crate) const NFT_MSG_NEWCHAIN: u16 = u16_of(libc::NFT_MSG_NEWCHAIN);
pub(crate) const NFT_MSG_NEWRULE: u16 = u16_of(libc::NFT_MSG_NEWRULE);
pub(crate) const NFT_REG_1: u32 = u32_of(libc::NFT_REG_1);
pub(crate) const NFT_TABLE_F_OWNER: u32 = 2;
pub(crate) const NFT_CMP_EQ: u32 = u32_of(libc::NFT_CMP_EQ);
pub(crate) const NFT_META_NFPROTO: u32 = u32_of(libc::NFT_META_NFPROTO);
pub(crate) const NFT_META_L4PROTO: u32 = u32_of(libc::NFT_META_L4PROTO);
pub(crate) const NFT_PAYLOAD_NETWORK_HEADER: u32 = u32_of(libc::NFT_PAYLOAD_NETWORK_HEADER);
pub(crate) const NFT_PAYLOAD_TRANSPORT_HEADER: u32 = u32_of(libc::NFT_PAYLOAD_TRANSPORT_HEADER);
pub(crate) const NFT_FIB_RESULT_ADDRTYPE: u32 = 3;
pub(crate) const NFTA_FIB_F_DADDR: u32 = 2;

pub(crate) const NFTA_TABLE_NAME: u16 = 1;
pub(crate) const NFTA_TABLE_FLAGS: u16 = 2;
pub(crate) const NFTA_CHAIN_TABLE: u16 = 1;
pub(crate) const NFTA_CHAIN_NAME: u16 = 3;
pub(crate) const NFTA_CHAIN_HOOK: u16 = 4;
pub(crate) const NFTA_CHAIN_TYPE: u16 = 7;
pub(crate) const NFTA_HOOK_HOOKNUM: u16 = 1;
pub(crate) const NFTA_HOOK_PRIORITY: u16 = 2;
pub(crate) const NFTA_RULE_TABLE: u16 = 1;
pub(crate) const NFTA_RULE_CHAIN: u16 = 2;
pub(crate) const NFTA_RULE_EXPRESSIONS: u16 = 4;
pub(crate) const NFTA_RULE_USERDATA: u16 = 7;
pub(crate) const NFTA_LIST_ELEM: u16 = 1;
pub(crate) const NFTA_EXPR_NAME: u16 = 1;
pub(crate) const NFTA_EXPR_DATA: u16 = 2;
pub(crate) const NFTA_META_DREG: u16 = 1;
pub(crate) const NFTA_META_KEY: u16 = 2;
pub(crate) const NFTA_PAYLOAD_DREG: u16 = 1;
pub(crate) const NFTA_PAYLOAD_BASE: u16 = 2;
pub(crate) const NFTA_PAYLOAD_OFFSET: u16 = 3;
pub(crate) const NFTA_PAYLOAD_LEN: u16 = 4;
pub(crate) const NFTA_CMP_SREG: u16 = 1;
pub(crate) const NFTA_CMP_OP: u16 = 2;
pub(crate) const NFTA_CMP_DATA: u16 = 3;
pub(crate) const NFTA_DATA_VALUE: u16 = 1;
pub(crate) const NFTA_FIB_DREG: u16 = 1;
pub(crate) const NFTA_FIB_RESULT: u16 = 2;
pub(crate) const NFTA_FIB_FLAGS: u16 = 3;

/// Type of a rule's comment in its user data, by the convention of libnftnl (`libnftnl/udata.h`).
pub(crate) const NFTNL_UDATA_RULE_COMMENT: u8 = 0;
