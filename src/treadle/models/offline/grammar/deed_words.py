"""Verbs for what is done to things, beside those of `CHANGES`: where a tool is called by one, and not said to tell
something, nothing but an order by that verb calls it.

Data only. Read by `commands`, `naming` and `orders`.
"""

from treadle.models.offline.grammar.english import word_set

# They are hardly anything else.
DEED_VERBS = word_set(
    """abandon abolish absorb accelerate accredit accuse adapt adjourn administer admit adopt advertise agitate align
    allocate allot amend amplify annihilate announce annul apologize appoint apportion apprehend arrange arrest
    assassinate assemble attach authorize automate banish baptize bequeath bestow bless broaden bury calibrate
    certify circulate cleanse commend compensate compress condemn confine confiscate connect conquer consecrate
    consolidate construct consume convene correct crown curate cultivate customize dampen debar decant
    decommission decontaminate decorate dedicate deepen defend defer deflate defrost defuse dehydrate delegate
    deliver demolish denounce deport derail descale destroy detach detain detonate devour dim disarm disband
    disconnect disclose discontinue disengage disinfect dismantle dismiss dispense disperse displace dispose
    disqualify disrupt dissolve distribute divert donate douse downgrade eject elect elevate eliminate embed
    endorse engage engrave enlarge enlist equip eradicate erect euthanize evacuate evict excavate exclude exhume
    expel expire expunge exterminate extinguish extradite fabricate fasten fertilize finalize flatten forbid
    forfeit forget forgive fortify fulfil fulfill fumigate furnish halve hang harden hijack hospitalize humidify
    hydrate ignite immobilize immunize impeach implement impose impound imprison inaugurate incinerate
    incorporate incubate inflate inform initiate inject inoculate inscribe instruct insulate insure intercept
    interrogate interrupt introduce invalidate invest irrigate isolate jettison kidnap kill lengthen liberate
    liquidate loosen lubricate maintain marinate marry migrate mobilize moisten mow mute neuter neutralize
    nominate nullify obliterate obstruct offload omit operate oust overturn overwrite pasteurize penalize
    perforate pierce pollinate postpone preserve prevent proclaim procure prohibit propagate prosecute provision
    prune publicize pulverize punish purify quash quell ratify rebook rebuild recharge recommission reconnect
    reconstruct recycle redeem refill refinance refrigerate refuel refurbish regenerate regulate rehabilitate
    rehearse rehome reimburse reinforce reinstate relegate relinquish relocate remit remodel renovate reopen
    repatriate repay replace replant replenish repossess reprimand reprogram rescind reschedule resell reseal
    reshape resign restock restrain restrict resurrect retire retract retrain revive reword rezone ripen rotate
    salvage sanitize saturate scold sedate segregate separate sequester sever sharpen shrink soften sow spay
    sterilize stow strengthen submerge summon supplement suppress suspend tame tamper terminate thaw tighten
    topple tranquilize transmit unblock undo unfreeze unhide uninstall unlink unload unmute unpack unplug unseal
    untie uproot vaccinate vandalize vaporize ventilate waive weaken weld widen withhold yank zap"""
)

# These name a thing as well, "the harvest of a field": no order is one of them with an "of" behind it.
DEED_NOUNS = word_set(
    """ambush anchor appeal attack auction award bake bandage barter bath batch bid bill blast blend boil boost bottle
    brake breed brew brief brush build burn call cap capture carve cast catch challenge chase chill chop claim
    clamp clean clear climb clip clone coat comb command commission control cook copy cover crush cure cut cycle
    debit debug decrease delay design detour dig dip discharge discount dispute ditch dive dock double drain
    dress drive drum dry dump duplicate dust dye eject exile exit experiment fan farm fax feed fence ferry fill
    film fine fish fit fix flag flash float flood flush fly fold force forge foster frame freeze frost fuel fund
    garnish gift glaze glue graft grant grease grill grind groom guard guide hack halt hammer handle harvest
    hatch haul heal heat hide highlight hoist hook host hug hunt increase inventory iron jam jump kick knit
    knock land lay lead leak lease lift light link loan lock lower mark mask massage melt mend milk mine mint
    mirror mix mount nail nurse oil overhaul pack paint pardon park parole patch patrol pave peel permit pickle
    pin pitch plant play plaster pledge plough plow plug poison polish pool pour press prime print proof pull
    pump punch push quarantine raffle raid rake reap rebate record recruit redesign reform refresh relaunch
    relay release repair reply reprint rescue retreat revamp reward rewrite ring rinse roast root row rub ruin
    rush sack sail salt sand sanction save scrap screen scrub seal seat seed service sew shake shave shear shed
    shelter shield ship shoot shower shred shuffle shunt sign signal silence sink skip slaughter slice snooze
    soak spill spin sponsor spray spread sprinkle squeeze stack stage stain stamp staple steam steer stitch
    store strap stretch strike strip substitute supply surrender sweep swing tag tap tape teach tear tie till
    tilt tip toast tow trade train transplant transport trap trash treat trim tune tutor twist unveil upgrade
    vacuum vet veto void vote walk warm wash water wax weed whip whisk wipe wire wrap yaw"""
)

# They make a figure other, and are hardly told of as done to a thing: `settle_balance`, `override_price`.
FIGURE_VERBS = word_set(
    """absolve absorb accept adjust agree amend award beat bid boost bump burn cap charge claim clear collect comp
    consume contest correct crash debit deflate deplete deposit dispute dock double drain drop dump earn empty
    exhaust fix flatten forgive garnish grant guarantee haggle halve hedge hike impose inflate jack levy liquidate
    lock lower mark match max merge min negotiate nil nudge null offset override pad pardon peg pin pocket quote
    rebase reconcile redeem refresh refund reset restore revert round settle sink slash spend split square squeeze
    sweep tender top trim triple tune tweak undo void waive withdraw write zero"""
)
